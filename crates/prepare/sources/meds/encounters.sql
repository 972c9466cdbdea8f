SELECT
    encounter_id,
    visits.subject_id,
    start,
    "end",
    prediction_time,
    CASE split WHEN 'train' THEN 'train' WHEN 'tuning' THEN 'validation' WHEN 'held_out' THEN 'test' END AS part,
    CASE
        WHEN $per <> 'visit' AND known.subject_id IS NULL THEN 'unknown_subject'
        WHEN start IS NULL THEN 'no_visit_yet'
        WHEN split NOT IN ('train', 'tuning', 'held_out') THEN 'other_split'
    END AS dropped,
    boolean_value,
    CASE WHEN prediction_time IS NOT NULL THEN 'task_labels' END AS from_table
FROM visits
LEFT JOIN subject_splits ON visits.subject_id = subject_splits.subject_id
-- Those of whom there are events.
LEFT JOIN (SELECT DISTINCT subject_id FROM data WHERE $per <> 'visit') AS known ON visits.subject_id = known.subject_id
