-- Ages above 89 are recorded as `> 89`. A stay in a unit is one of several in a stay in the hospital, of which the
-- earlier ones count as visits: nothing else says which stay came first.
WITH known AS (
    SELECT
        patientunitstayid AS encounter_id,
        age_band(CASE WHEN starts_with(age, '>') THEN 90 ELSE try_cast(age AS DOUBLE) END) AS age,
        CASE WHEN lower(gender) IN ('female', 'male', 'other') THEN gender END AS sex,
        ethnicity,
        unittype AS unit,
        unitadmitsource AS admission_source,
        hospitaladmitsource AS hospital_admission_source,
        visits_band(CAST(unitvisitnumber AS DOUBLE) - 1) AS earlier_visits,
        admissionheight AS height,
        admissionweight AS weight,
        unitdischargelocation AS discharge,
        CASE WHEN unitdischargeoffset BETWEEN 0 AND 52560000 THEN unitdischargeoffset / CAST(1440 AS DOUBLE) END AS days
    FROM patient
)
SELECT encounter_id, 'age' AS name, age AS value, CAST(NULL AS DOUBLE) AS numeric_value FROM known
UNION ALL SELECT encounter_id, 'sex', sex, NULL FROM known
UNION ALL SELECT encounter_id, 'ethnicity', ethnicity, NULL FROM known
UNION ALL SELECT encounter_id, 'unit', unit, NULL FROM known
UNION ALL SELECT encounter_id, 'admission_source', admission_source, NULL FROM known
UNION ALL SELECT encounter_id, 'hospital_admission_source', hospital_admission_source, NULL FROM known
UNION ALL SELECT encounter_id, 'earlier_visits', earlier_visits, NULL FROM known
UNION ALL SELECT encounter_id, 'height', NULL, height FROM known
UNION ALL SELECT encounter_id, 'weight', NULL, weight FROM known
UNION ALL SELECT encounter_id, 'discharge', discharge, NULL FROM known
UNION ALL SELECT encounter_id, 'length_of_stay', NULL, days FROM known
