-- Spans of 30 days let the engine find the visit of a time by hashing; a visit has at most a century of them.
WITH spans AS (
    SELECT
        *,
        unnest(generate_series(
            arrow_cast(start, 'Int64') / 2592000000000,
            least(arrow_cast("end", 'Int64') / 2592000000000, arrow_cast(start, 'Int64') / 2592000000000 + 1200)
        )) AS span
    FROM visits
    WHERE "end" >= start
),
recorded AS (
    SELECT
        subject_id, time, CAST(visit_id AS VARCHAR) AS visit, data.code, numeric_value, kind, description, is_withheld,
        arrow_cast(time, 'Int64') / 2592000000000 AS span
    FROM data
    LEFT JOIN code_kinds ON data.code = code_kinds.code
),
-- An event belongs to the visit that it names, or else to the one that goes on at its time.
placed AS (
    SELECT recorded.subject_id, encounter_id, prediction_time, time, code, numeric_value, kind, description, is_withheld
    FROM recorded
    LEFT JOIN visits ON recorded.subject_id = visits.subject_id AND recorded.visit = visits.visit
    WHERE $encounters = 'visit' AND recorded.visit IS NOT NULL
    UNION ALL
    SELECT recorded.subject_id, encounter_id, prediction_time, time, code, numeric_value, kind, description, is_withheld
    FROM recorded
    LEFT JOIN spans
        ON recorded.subject_id = spans.subject_id
        AND recorded.span = spans.span
        AND recorded.time BETWEEN spans.start AND spans."end"
    WHERE $encounters <> 'visit' OR recorded.visit IS NULL
)
SELECT
    encounter_id,
    -- Whose event it is, also where it belongs to no visit.
    subject_id,
    CASE kind WHEN 'vital' THEN 'lab' ELSE kind END AS kind,
    code,
    time,
    description,
    numeric_value,
    CASE
        WHEN time IS NULL THEN 'no_time'
        WHEN kind IS NULL THEN 'other_code'
        WHEN kind IN ('admission', 'discharge', 'icu_admission', 'icu_discharge') THEN 'visit_boundary'
        WHEN is_withheld THEN 'not_given'
        WHEN kind = 'vital' AND $vitals = 'drop' THEN 'vital'
        WHEN encounter_id IS NULL THEN CASE $per WHEN 'visit' THEN 'no_encounter' ELSE 'no_label' END
        WHEN time > prediction_time THEN 'after_prediction'
    END AS dropped,
    -- Several labels can see one event.
    CASE $per WHEN 'visit' THEN 'data' END AS from_table
FROM placed
