-- What is known of the patient and the visit at discharge besides the codes, one row per encounter and fact.
-- Numbers are in bands that are narrow where there are many encounters.
WITH stays AS (
    SELECT *, lag(readmitted) OVER (PARTITION BY patient_nbr ORDER BY CAST(encounter_id AS BIGINT)) AS readmitted_before
    FROM diabetic_data
), facts AS (
    SELECT encounter_id, unnest(make_array(
        -- [70-80) becomes 70-79.
        'age=' || split_part(trim(age, '[)'), '-', 1) || '-'
            || (CAST(nullif(split_part(trim(age, '[)'), '-', 2), '') AS BIGINT) - 1),
        CASE gender WHEN 'Female' THEN 'sex=female' WHEN 'Male' THEN 'sex=male' END,
        'race=' || lower(nullif(race, '?')),
        'weight=' || nullif(weight, '?'),
        CASE admission_type_id
            WHEN 1 THEN 'admission=emergency'
            WHEN 2 THEN 'admission=urgent'
            WHEN 3 THEN 'admission=elective'
            WHEN 4 THEN 'admission=newborn'
            WHEN 7 THEN 'admission=trauma'
        END,
        -- By number, as in the published IDS_mapping.csv.
        'admission_source=' || admission_source_id,
        'discharge=' || discharge_disposition_id,
        'payer=' || lower(nullif(payer_code, '?')),
        'specialty=' || lower(nullif(medical_specialty, '?')),
        'days=' || time_in_hospital,
        -- Visits in the year before.
        'outpatient_visits=' || CASE
            WHEN number_outpatient <= 2 THEN CAST(number_outpatient AS VARCHAR)
            WHEN number_outpatient <= 4 THEN '3-4'
            WHEN number_outpatient >= 5 THEN '5+'
        END,
        'emergency_visits=' || CASE
            WHEN number_emergency <= 2 THEN CAST(number_emergency AS VARCHAR)
            WHEN number_emergency <= 4 THEN '3-4'
            WHEN number_emergency >= 5 THEN '5+'
        END,
        'inpatient_visits=' || CASE
            WHEN number_inpatient <= 5 THEN CAST(number_inpatient AS VARCHAR)
            WHEN number_inpatient <= 7 THEN '6-7'
            WHEN number_inpatient <= 9 THEN '8-9'
            WHEN number_inpatient >= 10 THEN '10+'
        END,
        'diagnoses=' || CASE WHEN number_diagnoses < 10 THEN CAST(number_diagnoses AS VARCHAR) ELSE '10+' END,
        'procedures=' || num_procedures,
        'lab_procedures=' || CASE
            WHEN num_lab_procedures < 80 THEN num_lab_procedures / 10 * 10 || '-' || (num_lab_procedures / 10 * 10 + 9)
            WHEN num_lab_procedures >= 80 THEN '80+'
        END,
        'medications=' || CASE
            WHEN num_medications < 40 THEN num_medications / 5 * 5 || '-' || (num_medications / 5 * 5 + 4)
            WHEN num_medications >= 40 THEN '40+'
        END,
        'drugs_changed=' || CASE change WHEN 'Ch' THEN 'yes' WHEN 'No' THEN 'no' END,
        'diabetes_drugs=' || lower(nullif(diabetesmed, '?')),
        -- What became of the encounter before is known by now: this one, or another, came within 30 days or later.
        CASE WHEN $last_visit THEN CASE
            WHEN readmitted_before = '<30' THEN 'last_visit=within 30 days'
            WHEN readmitted_before = '>30' THEN 'last_visit=later'
        END END
    )) AS fact
    FROM stays
)
-- A cell without a value is no fact.
SELECT encounter_id, split_part(fact, '=', 1) AS name, substr(fact, strpos(fact, '=') + 1) AS value
FROM facts
WHERE fact IS NOT NULL
