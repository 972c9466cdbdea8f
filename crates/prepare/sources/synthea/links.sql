SELECT encounter AS encounter_id, 'SNOMED:' || reasoncode AS cause, 'SNOMED:' || code AS effect
FROM procedures WHERE reasoncode IS NOT NULL
UNION ALL
SELECT encounter, 'SNOMED:' || reasoncode, 'RXNORM:' || code
FROM medications WHERE reasoncode IS NOT NULL
