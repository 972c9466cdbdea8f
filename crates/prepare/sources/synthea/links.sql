WITH recorded AS (
    SELECT encounter, reasoncode, 'SNOMED:' || code AS effect, time FROM procedures
    UNION ALL
    SELECT encounter, reasoncode, 'RXNORM:' || code, time FROM medications
)
SELECT
    encounter AS encounter_id,
    'SNOMED:' || reasoncode AS cause,
    effect,
    CASE WHEN time = date_trunc('day', time) THEN time + INTERVAL '1 day' ELSE time END AS time
FROM recorded
WHERE reasoncode IS NOT NULL
