-- What is wrong becomes null, which links nothing. A condition after the outer join said the same, and made DataFusion 55.2 lose
-- rows as long as joins filtered what they were joined with while the query ran.
SELECT
    treatments.encounter AS encounter_id,
    CASE WHEN conditions.wrong IS NULL THEN coalesce(reason.code, conditions.code) END AS cause,
    CASE WHEN treatments.wrong IS NULL THEN treatments.code END AS effect
FROM reason
JOIN treatments ON reason.resource = treatments.resource
LEFT JOIN conditions ON reason.condition = conditions.id
