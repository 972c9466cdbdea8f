WITH known AS (
    SELECT lowered(name) AS name, min(kind) AS kind FROM kinds GROUP BY lowered(name)
)
SELECT
    events.encounter_id,
    coalesce(known.kind, events.kind) AS kind,
    code,
    description,
    time,
    numeric_value,
    'events' AS from_table,
    CASE
        WHEN time > prediction_time THEN 'after_prediction'
        WHEN time IS NULL AND prediction_time IS NOT NULL THEN 'no_time'
    END AS dropped
FROM events
LEFT JOIN known ON lowered(events.kind) = known.name
LEFT JOIN encounters ON events.encounter_id = encounters.encounter_id
