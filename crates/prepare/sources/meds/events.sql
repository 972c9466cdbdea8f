WITH recorded AS (
    SELECT subject_id, time, CAST(visit_id AS VARCHAR) AS visit, data.code, numeric_value, kind, description
    FROM data
    LEFT JOIN code_kinds ON data.code = code_kinds.code
),
-- An event belongs to the visit that it names, or else to the one that goes on at its time.
placed AS (
    SELECT encounter_id, prediction_time, time, code, numeric_value, kind, description
    FROM recorded
    LEFT JOIN visits ON recorded.subject_id = visits.subject_id AND recorded.visit = visits.visit
    WHERE $encounters = 'visit' AND recorded.visit IS NOT NULL
    UNION ALL
    SELECT encounter_id, prediction_time, time, code, numeric_value, kind, description
    FROM recorded
    LEFT JOIN visits
        ON recorded.subject_id = visits.subject_id
        AND recorded.time >= visits.start
        AND coalesce(recorded.time <= visits."end", true)
    WHERE $encounters <> 'visit' OR recorded.visit IS NULL
)
SELECT
    encounter_id,
    kind,
    code,
    description,
    numeric_value,
    CASE
        WHEN time IS NULL THEN 'no_time'
        WHEN kind IS NULL THEN 'other_code'
        WHEN kind IN ('admission', 'discharge') THEN 'visit_boundary'
        WHEN encounter_id IS NULL THEN CASE $per WHEN 'label' THEN 'no_label' ELSE 'no_encounter' END
        WHEN time > prediction_time THEN 'after_prediction'
    END AS dropped
FROM placed
