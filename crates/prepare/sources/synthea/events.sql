-- The reason of a procedure or a medication is a diagnosis that its encounter treats, also where it was made in an earlier one.
SELECT encounter AS encounter_id, 'diagnosis' AS kind, 'SNOMED:' || code AS code, description,
       CAST(NULL AS DOUBLE) AS numeric_value, CAST(NULL AS VARCHAR) AS dropped, 'conditions' AS from_table
FROM conditions
UNION ALL
SELECT encounter, 'diagnosis', 'SNOMED:' || reasoncode, reasondescription, NULL, NULL, NULL
FROM procedures WHERE reasoncode IS NOT NULL
UNION ALL
SELECT encounter, 'diagnosis', 'SNOMED:' || reasoncode, reasondescription, NULL, NULL, NULL
FROM medications WHERE reasoncode IS NOT NULL
UNION ALL
SELECT encounter, 'treatment', 'SNOMED:' || code, description, NULL, NULL, 'procedures' FROM procedures
UNION ALL
SELECT encounter, 'treatment', 'RXNORM:' || code, description, NULL, NULL, 'medications' FROM medications
UNION ALL
-- A number goes into a bucket; a word is part of the code.
SELECT encounter, 'lab',
       CASE WHEN type = 'text' THEN 'LOINC:' || code || '=' || value ELSE 'LOINC:' || code END,
       CASE WHEN type = 'text' THEN concat(description, ': ', value) ELSE description END,
       CASE WHEN coalesce(type, 'numeric') = 'numeric' THEN try_cast(value AS DOUBLE) END,
       CASE WHEN $observations = 'laboratory' AND coalesce(category, 'laboratory') <> 'laboratory' THEN 'other_category' END,
       'observations'
FROM observations
WHERE $observations <> 'none'
