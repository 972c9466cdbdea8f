-- The reason of a procedure or a medication is a diagnosis that its encounter treats, also where it was made in
-- an earlier one. It is known when they are, and one of an encounter when that is over, but not before its condition.
WITH
-- The rows of one observation, which are those of its components, are of one version.
observations AS (
    SELECT
        *,
        rank() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) > 1 AS is_superseded
    FROM observation
    WHERE $observations <> 'none'
),
-- What has reasons: treatments, and encounters, whose reasons are their diagnoses.
treated AS (
    SELECT resource, encounter, time, wrong FROM treatments
    UNION ALL
    SELECT resource, id, time, CASE WHEN wrong = 'superseded' THEN wrong END FROM visits
),
latest AS (
    SELECT id, code, description, time, wrong FROM conditions WHERE coalesce(wrong, '') <> 'superseded'
),
recorded AS (
    SELECT encounter, 'diagnosis' AS kind, code, description, time, CAST(NULL AS DOUBLE) AS numeric_value,
           wrong, 'condition' AS from_table
    FROM conditions
    UNION ALL
    SELECT treated.encounter, 'diagnosis', coalesce(reason.code, latest.code),
           coalesce(reason.description, latest.description),
           CASE WHEN treated.time IS NOT NULL THEN greatest(treated.time, reason.time, latest.time) END, NULL,
           CASE
               WHEN treated.wrong IS NOT NULL THEN treated.wrong
               WHEN reason.condition IS NOT NULL AND latest.id IS NULL THEN 'unknown_condition'
               ELSE latest.wrong
           END,
           'reason'
    FROM reason
    LEFT JOIN treated ON reason.resource = treated.resource
    LEFT JOIN latest ON reason.condition = latest.id
    UNION ALL
    SELECT encounter, 'treatment', code, description, time, NULL, wrong, from_table FROM treatments
    UNION ALL
    -- A number goes into a bucket; a word is part of the code, but no sentence, which can be about anyone.
    SELECT encounter, 'lab',
           CASE WHEN length(value) <= 40 THEN code || '=' || value ELSE code END,
           CASE WHEN length(value) <= 40
               THEN concat(coalesce(description, code), ': ', coalesce(value_description, value)) ELSE description
           END,
           time,
           numeric_value,
           CASE
               WHEN is_superseded THEN 'superseded'
               WHEN $observations = 'laboratory' AND coalesce(category, 'laboratory') <> 'laboratory'
                   THEN 'other_category'
               WHEN status = 'entered-in-error' THEN 'entered_in_error'
               WHEN status = 'cancelled' THEN 'not_done'
               WHEN absent THEN 'no_value'
           END,
           'observation'
    FROM observations
)
SELECT
    encounter AS encounter_id,
    kind,
    code,
    description,
    time,
    numeric_value,
    from_table,
    CASE WHEN wrong IS NOT NULL THEN wrong WHEN encounter IS NULL THEN 'without_encounter' END AS dropped
FROM recorded
