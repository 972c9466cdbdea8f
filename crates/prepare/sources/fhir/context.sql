-- Of several versions of an encounter or a patient, the latest counts.
WITH people AS (
    SELECT *
    FROM patient
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
),
latest AS (
    SELECT id, patient, start, upper(class) AS class FROM visits WHERE coalesce(wrong, '') <> 'superseded'
),
persons AS (
    SELECT
        latest.id AS encounter_id,
        age_band(years_between(birth_date, start)) AS age,
        CASE WHEN lower(gender) IN ('female', 'male', 'other') THEN gender END AS sex
    FROM latest
    JOIN people ON latest.patient = people.id
)
SELECT encounter_id, 'age' AS name, age AS value FROM persons
UNION ALL SELECT encounter_id, 'sex', sex FROM persons
UNION ALL
SELECT id, 'visit',
       CASE class
           WHEN 'IMP' THEN 'inpatient'
           WHEN 'ACUTE' THEN 'acute inpatient'
           WHEN 'NONACUTE' THEN 'non-acute inpatient'
           WHEN 'EMER' THEN 'emergency'
           WHEN 'AMB' THEN 'ambulatory'
           WHEN 'OBSENC' THEN 'observation'
           WHEN 'SS' THEN 'short stay'
           WHEN 'HH' THEN 'home health'
           WHEN 'VR' THEN 'virtual'
           WHEN 'FLD' THEN 'field'
           WHEN 'PRENC' THEN 'pre-admission'
           ELSE class
       END
FROM latest
