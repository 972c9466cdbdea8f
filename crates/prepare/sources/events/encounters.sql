SELECT
    events.encounter_id,
    min(subject_id) AS subject_id,
    coalesce(min(start), min(time)) AS start,
    min(prediction_time) AS prediction_time,
    CASE WHEN min(subject_id) <> max(subject_id) THEN 'two_subjects' END AS dropped
FROM events
LEFT JOIN encounters ON events.encounter_id = encounters.encounter_id
WHERE events.encounter_id IS NOT NULL
GROUP BY events.encounter_id
