WITH made AS (
    SELECT
        encounter_id,
        min(subject_id) AS subject_id,
        min(subject_id) <> max(subject_id) AS has_two_subjects,
        min(time) AS first_time
    FROM events
    WHERE encounter_id IS NOT NULL
    GROUP BY encounter_id
)
SELECT
    coalesce(made.encounter_id, encounters.encounter_id) AS encounter_id,
    subject_id,
    coalesce(start, first_time) AS start,
    "end",
    prediction_time,
    CASE
        WHEN made.encounter_id IS NULL THEN 'no_events'
        WHEN has_two_subjects THEN 'two_subjects'
    END AS dropped
FROM made
FULL JOIN encounters ON made.encounter_id = encounters.encounter_id
