-- The source's encounters with the user's labels; `dropped` names the rule that drops one.
SELECT
    CAST(given.encounter_id AS VARCHAR) AS encounter_id,
    CAST(given.subject_id AS VARCHAR) AS subject_id,
    given.start,
    given."end",
    $prediction_time AS prediction_time,
    given.part,
    given.from_table,
    CASE
        WHEN given.encounter_id IS NULL THEN 'no_encounter_id'
        WHEN given.dropped IS NOT NULL THEN given.dropped
        WHEN given.subject_id IS NULL THEN 'no_subject_id'
        ELSE $label_rule
    END AS dropped
    $labels
FROM (SELECT encounter_id, subject_id, $columns FROM source_encounters $limit) AS given
$join_labels
