SELECT
    events.encounter_id,
    coalesce(kinds.kind, events.kind) AS kind,
    code,
    description,
    time,
    numeric_value,
    CASE WHEN time > prediction_time THEN 'after_prediction' END AS dropped
FROM events
LEFT JOIN kinds ON lower(events.kind) = kinds.name
LEFT JOIN encounters ON events.encounter_id = encounters.encounter_id
