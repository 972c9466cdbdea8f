SELECT
    events.encounter_id,
    coalesce(known_kinds.kind, events.kind) AS kind,
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
LEFT JOIN known_kinds ON lowered(events.kind) = known_kinds.name
LEFT JOIN encounters ON events.encounter_id = encounters.encounter_id
