-- MIMIC-IV has the age in an anchor year; those above 89 are 91 there. MIMIC-III has the day of birth, which is 300
-- years before the first admission for them.
WITH people AS (
    SELECT subject_id, min(gender) AS gender, min(anchor_age) AS anchor_age, min(anchor_year) AS anchor_year,
           min(dob) AS dob
    FROM patients
    GROUP BY subject_id
),
admitted AS (
    SELECT
        encounter_id,
        CASE upper(trim(admission_type))
            WHEN 'EW EMER.' THEN 'emergency'
            WHEN 'DIRECT EMER.' THEN 'direct emergency'
            WHEN 'EU OBSERVATION' THEN 'emergency observation'
            WHEN 'OBSERVATION ADMIT' THEN 'observation'
            ELSE admission_type
        END AS admission,
        admission_location AS admission_source,
        insurance,
        language,
        marital_status,
        CASE WHEN upper(race) NOT IN ('UNABLE TO OBTAIN', 'PATIENT DECLINED TO ANSWER') THEN race END AS race,
        discharge_location AS discharge
    FROM visits
    JOIN admissions ON visits.hadm_id = admissions.hadm_id
),
persons AS (
    SELECT
        encounter_id,
        age_band(coalesce(anchor_age + date_part('year', start) - anchor_year, years_between(dob, start))) AS age,
        CASE upper(gender) WHEN 'F' THEN 'female' WHEN 'M' THEN 'male' END AS sex
    FROM visits
    JOIN people ON visits.subject_id = people.subject_id
)
SELECT encounter_id, 'age' AS name, age AS value FROM persons
UNION ALL SELECT encounter_id, 'sex', sex FROM persons
UNION ALL SELECT encounter_id, 'admission', admission FROM admitted
UNION ALL SELECT encounter_id, 'admission_source', admission_source FROM admitted
UNION ALL SELECT encounter_id, 'insurance', insurance FROM admitted
UNION ALL SELECT encounter_id, 'language', language FROM admitted
UNION ALL SELECT encounter_id, 'marital_status', marital_status FROM admitted
UNION ALL SELECT encounter_id, 'race', race FROM admitted
UNION ALL SELECT encounter_id, 'discharge', discharge FROM admitted
UNION ALL SELECT stay_id, 'unit', first_careunit FROM icustays WHERE $encounters = 'icu'
