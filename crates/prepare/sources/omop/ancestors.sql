-- The ancestors of a class of the concepts that events have, and how far away each is. Codes of the source have
-- those of the standard concepts beside them.
WITH known AS (
    SELECT DISTINCT code, standard_id
    FROM source_events
    WHERE kind = $kind AND code IS NOT NULL AND standard_id IS NOT NULL
),
groups AS (
    SELECT
        concept_id,
        concept_name,
        coalesce(vocabulary_id || ':' || concept_code, CAST(concept_id AS VARCHAR)) AS code
    FROM concept
    WHERE lower(concept_class_id) = lower($word)
)
SELECT known.code, groups.code AS group_code, concept_name AS description, min_levels_of_separation AS distance
FROM known
JOIN concept_ancestor ON known.standard_id = descendant_concept_id
JOIN groups ON ancestor_concept_id = groups.concept_id
