SELECT
    encounter_id,
    visits.subject_id,
    start,
    "end",
    prediction_time,
    CASE split WHEN 'train' THEN 'train' WHEN 'tuning' THEN 'validation' WHEN 'held_out' THEN 'test' END AS part,
    CASE
        WHEN start IS NULL THEN 'no_visit_yet'
        WHEN split NOT IN ('train', 'tuning', 'held_out') THEN 'other_split'
    END AS dropped,
    boolean_value
FROM visits
LEFT JOIN subject_splits ON visits.subject_id = subject_splits.subject_id
