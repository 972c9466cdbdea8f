-- The reason of a procedure or a medication is a diagnosis that its encounter treats, also where it was made in an earlier one.
WITH
-- The rows of one observation, which are those of its components, are of one version.
observations AS (
    SELECT *
    FROM observation
    WHERE $observations = 'all' OR ($observations = 'laboratory' AND coalesce(category, 'laboratory') = 'laboratory')
    QUALIFY rank() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
),
-- What has reasons: treatments, and encounters, whose reasons are their diagnoses.
treated AS (
    SELECT resource, encounter FROM treatments WHERE wrong IS NULL
    UNION ALL
    SELECT resource, id FROM visits
),
recorded AS (
    SELECT encounter, 'diagnosis' AS kind, code, description, CAST(NULL AS DOUBLE) AS numeric_value, wrong
    FROM conditions
    UNION ALL
    SELECT treated.encounter, 'diagnosis', coalesce(reason.code, conditions.code),
           coalesce(reason.description, conditions.description), NULL,
           CASE WHEN reason.condition IS NOT NULL AND conditions.id IS NULL THEN 'unknown_condition' ELSE wrong END
    FROM reason
    JOIN treated ON reason.resource = treated.resource
    LEFT JOIN conditions ON reason.condition = conditions.id
    UNION ALL
    SELECT encounter, 'treatment', code, description, NULL, wrong FROM treatments
    UNION ALL
    -- A number goes into a bucket; a word is part of the code, but no sentence, which can be about anyone.
    SELECT encounter, 'lab',
           CASE WHEN length(value) <= 40 THEN code || '=' || value ELSE code END,
           CASE WHEN length(value) <= 40
               THEN concat(coalesce(description, code), ': ', coalesce(value_description, value)) ELSE description
           END,
           numeric_value,
           CASE
               WHEN status = 'entered-in-error' THEN 'entered_in_error'
               WHEN status = 'cancelled' THEN 'not_done'
               WHEN absent THEN 'no_value'
           END
    FROM observations
)
SELECT
    encounter AS encounter_id,
    kind,
    code,
    description,
    numeric_value,
    CASE WHEN wrong IS NOT NULL THEN wrong WHEN encounter IS NULL THEN 'without_encounter' END AS dropped
FROM recorded
