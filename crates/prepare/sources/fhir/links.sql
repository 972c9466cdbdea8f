-- What is wrong becomes null, which links nothing. As a condition after the outer join it made DataFusion 55 lose every row of
-- 9,000, where 2,400 came through.
SELECT
    treatments.encounter AS encounter_id,
    CASE WHEN conditions.wrong IS NULL THEN coalesce(reason.code, conditions.code) END AS cause,
    CASE WHEN treatments.wrong IS NULL THEN treatments.code END AS effect
FROM reason
JOIN treatments ON reason.resource = treatments.resource
LEFT JOIN conditions ON reason.condition = conditions.id
