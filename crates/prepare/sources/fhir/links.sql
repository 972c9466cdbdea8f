-- A reason is a code, or a condition whose code counts.
WITH latest AS (
    SELECT id, code, time, wrong FROM conditions WHERE coalesce(wrong, '') <> 'superseded'
)
SELECT
    treatments.encounter AS encounter_id,
    coalesce(reason.code, latest.code) AS cause,
    treatments.code AS effect,
    CASE WHEN treatments.time IS NOT NULL THEN greatest(treatments.time, reason.time, latest.time) END AS time,
    CASE
        WHEN treatments.wrong IS NOT NULL THEN treatments.wrong
        WHEN latest.wrong IS NOT NULL THEN latest.wrong
        WHEN reason.condition IS NOT NULL AND latest.id IS NULL THEN 'unknown_condition'
    END AS dropped
FROM reason
JOIN treatments ON reason.resource = treatments.resource
LEFT JOIN latest ON reason.condition = latest.id
