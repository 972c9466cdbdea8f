SELECT encounter AS encounter_id, concat('SNOMED:', reasoncode) AS cause, concat('SNOMED:', code) AS effect
FROM procedures WHERE reasoncode IS NOT NULL
UNION ALL
SELECT encounter, concat('SNOMED:', reasoncode), concat('RXNORM:', code)
FROM medications WHERE reasoncode IS NOT NULL
