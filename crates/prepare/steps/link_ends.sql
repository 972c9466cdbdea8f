-- The source's links between numbers of codes; `dropped` names the rule that drops one.
SELECT
    given.encounter_id,
    causes.id AS cause,
    effects.id AS effect,
    CASE
        WHEN given.dropped IS NOT NULL THEN given.dropped
        WHEN given.encounter_id IS NULL THEN 'no_encounter'
        WHEN causes.id IS NULL THEN 'unknown_cause'
        WHEN effects.id IS NULL THEN 'unknown_effect'
        $after_prediction
    END AS dropped
FROM (
    SELECT CAST(encounter_id AS VARCHAR) AS encounter_id, cause, effect, $columns FROM source_links
) AS given
LEFT JOIN codes AS causes ON causes.kind = 'diagnosis' AND causes.code = given.cause
LEFT JOIN codes AS effects ON effects.kind = 'treatment' AND effects.code = given.effect
$join_times
