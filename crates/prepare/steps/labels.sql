SELECT
    CAST(encounter_id AS VARCHAR) AS encounter_id,
    CAST(label AS VARCHAR) AS label,
    CAST(value AS BOOLEAN) AS value,
    CAST(note AS VARCHAR) AS note,
    $columns
FROM $relation
