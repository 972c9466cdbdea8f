-- What is known of encounters beside codes, as codes; `dropped` names the rule that drops a row. A row without
-- a value says nothing, and is none. Values are text in lower case, or numbers, which go into buckets.
SELECT
    encounter_id,
    CASE WHEN value IS NULL THEN name ELSE name || '=' || value END AS code,
    CASE WHEN value IS NULL THEN numeric_value END AS numeric_value,
    CASE
        WHEN name IS NULL THEN 'no_name'
        WHEN value IN ('unknown', 'unspecified', 'not specified', 'unknown/not specified', 'other/unknown', 'n/a', '?')
            THEN 'unknown_value'
    END AS dropped
FROM (
    SELECT
        CAST(encounter_id AS VARCHAR) AS encounter_id,
        clean(CAST(name AS VARCHAR)) AS name,
        lowered(clean(CAST(value AS VARCHAR))) AS value,
        CAST(numeric_value AS DOUBLE) AS numeric_value
    FROM ($known)
)
WHERE value IS NOT NULL OR numeric_value IS NOT NULL
