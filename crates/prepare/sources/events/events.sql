SELECT
    events.encounter_id,
    coalesce(kinds.kind, events.kind) AS kind,
    code,
    description,
    time,
    numeric_value,
    CASE
        WHEN time > prediction_time THEN 'after_prediction'
        WHEN time IS NULL AND prediction_time IS NOT NULL THEN 'no_time'
    END AS dropped
FROM events
LEFT JOIN kinds ON lowered(events.kind) = lowered(kinds.name)
LEFT JOIN encounters ON events.encounter_id = encounters.encounter_id
