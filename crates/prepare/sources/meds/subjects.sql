-- What is recorded of subjects without a time, or with their birth: when they were born, and codes such as
-- `GENDER//F`, by what stands before the first slash.
WITH births AS (
    SELECT subject_id, min(time) AS birth
    FROM data
    WHERE code = 'MEDS_BIRTH' OR starts_with(code, 'MEDS_BIRTH/')
    GROUP BY subject_id
),
named AS (
    SELECT subject_id, time, lower(split_part(code, '/', 1)) AS name, regexp_replace(code, '^[^/]*/+', '') AS value
    FROM data
    WHERE lower(split_part(code, '/', 1)) IN ('gender', 'sex', 'race', 'ethnicity', 'language')
),
fixed AS (
    SELECT named.subject_id, name, value
    FROM named
    LEFT JOIN births ON named.subject_id = births.subject_id
    WHERE time IS NULL OR time <= birth
)
SELECT subject_id, 'birth' AS name, birth, CAST(NULL AS VARCHAR) AS value FROM births
UNION ALL
SELECT subject_id, CASE name WHEN 'gender' THEN 'sex' ELSE name END,
       arrow_cast(NULL, 'Timestamp(Microsecond, None)'), min(value)
FROM fixed
GROUP BY 1, 2
