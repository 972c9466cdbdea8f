-- Patients are as they are when the export is made, so that their marital status is known only afterwards.
WITH persons AS (
    SELECT
        encounters.id AS encounter_id,
        age_band(years_between(birthdate, coalesce(start_day, start))) AS age,
        CASE upper(gender) WHEN 'F' THEN 'female' WHEN 'M' THEN 'male' END AS sex,
        race,
        ethnicity,
        CASE upper(marital)
            WHEN 'M' THEN 'married' WHEN 'S' THEN 'single' WHEN 'D' THEN 'divorced' WHEN 'W' THEN 'widowed'
        END AS marital_status
    FROM encounters
    JOIN patients ON encounters.patient = patients.id
)
SELECT encounter_id, 'age' AS name, age AS value FROM persons
UNION ALL SELECT encounter_id, 'sex', sex FROM persons
UNION ALL SELECT encounter_id, 'race', race FROM persons
UNION ALL SELECT encounter_id, 'ethnicity', ethnicity FROM persons
UNION ALL SELECT encounter_id, 'marital_status', marital_status FROM persons
UNION ALL SELECT id, 'visit', encounterclass FROM encounters
