-- The reason of a procedure or a medication is a diagnosis that its encounter treats, also where it was made in
-- an earlier one; it is known when they are.
WITH recorded AS (
    SELECT encounter AS encounter_id, 'diagnosis' AS kind, 'SNOMED:' || code AS code, description, time,
           CAST(NULL AS DOUBLE) AS numeric_value, CAST(NULL AS VARCHAR) AS dropped, 'conditions' AS from_table
    FROM conditions
    UNION ALL
    SELECT encounter, 'diagnosis', 'SNOMED:' || reasoncode, reasondescription, time, NULL, NULL, NULL
    FROM procedures WHERE reasoncode IS NOT NULL
    UNION ALL
    SELECT encounter, 'diagnosis', 'SNOMED:' || reasoncode, reasondescription, time, NULL, NULL, NULL
    FROM medications WHERE reasoncode IS NOT NULL
    UNION ALL
    SELECT encounter, 'treatment', 'SNOMED:' || code, description, time, NULL, NULL, 'procedures'
    FROM procedures
    UNION ALL
    SELECT encounter, 'treatment', 'RXNORM:' || code, description, time, NULL, NULL, 'medications'
    FROM medications
    UNION ALL
    -- A number goes into a bucket; a word is part of the code.
    SELECT encounter, 'lab',
           CASE WHEN type = 'text' THEN 'LOINC:' || code || '=' || value ELSE 'LOINC:' || code END,
           CASE WHEN type = 'text' THEN concat(description, ': ', value) ELSE description END,
           time,
           CASE WHEN coalesce(type, 'numeric') = 'numeric' THEN try_cast(value AS DOUBLE) END,
           CASE
               WHEN $observations = 'laboratory' AND coalesce(category, 'laboratory') <> 'laboratory'
                   THEN 'other_category'
           END,
           'observations'
    FROM observations
    WHERE $observations <> 'none'
)
SELECT
    encounter_id,
    kind,
    code,
    description,
    -- Of a day without a time of day it is only known that it is over when the next one begins.
    CASE WHEN time = date_trunc('day', time) THEN time + INTERVAL '1 day' ELSE time END AS time,
    numeric_value,
    dropped,
    from_table
FROM recorded
