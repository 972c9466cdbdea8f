-- The code of an admission says of which type it is and where the patient comes from: ADMISSION//TYPE//SOURCE.
-- That of a visit is the first one in it that is known when something is predicted.
WITH boundaries AS (
    SELECT subject_id, time, regexp_replace(data.code, '/+', '/', 'g') AS code
    FROM data
    JOIN code_kinds ON data.code = code_kinds.code
    WHERE kind = 'admission' AND time IS NOT NULL
),
admissions AS (
    SELECT encounter_id, code
    FROM visits
    JOIN boundaries ON visits.subject_id = boundaries.subject_id
        AND time >= start AND time <= least("end", prediction_time)
    QUALIFY row_number() OVER (PARTITION BY encounter_id ORDER BY time, code) = 1
)
SELECT encounter_id, 'age' AS name, age_band(years_between(birth, start)) AS value
FROM visits JOIN subjects ON visits.subject_id = subjects.subject_id
WHERE name = 'birth'
UNION ALL
SELECT encounter_id, name,
       CASE
           WHEN name = 'sex' AND lower(value) IN ('f', 'female', '8532') THEN 'female'
           WHEN name = 'sex' AND lower(value) IN ('m', 'male', '8507') THEN 'male'
           WHEN name = 'sex' AND lower(value) IN ('u', '0') THEN NULL
           ELSE value
       END
FROM visits JOIN subjects ON visits.subject_id = subjects.subject_id
WHERE name <> 'birth'
UNION ALL
SELECT encounter_id, 'admission', split_part(code, '/', 2) FROM admissions
UNION ALL
SELECT encounter_id, 'admission_source', split_part(code, '/', 3) FROM admissions
UNION ALL
SELECT encounter_id, 'earlier_visits', visits_band(earlier_visits) FROM visits WHERE start IS NOT NULL
UNION ALL
SELECT encounter_id, 'days_since_last_visit',
       days_band((arrow_cast(start, 'Int64') - arrow_cast(last_end, 'Int64')) / 86400000000)
FROM visits
