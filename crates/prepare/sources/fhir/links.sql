WITH conditions AS (
    SELECT *
    FROM condition
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
),
medications AS (
    SELECT *
    FROM medication
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
),
requests AS (
    SELECT *
    FROM medication_request
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
),
procedures AS (
    SELECT *
    FROM procedure
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
),
treatments AS (
    SELECT resource, encounter, code FROM procedures
    WHERE coalesce(status, '') NOT IN ('entered-in-error', 'not-done')
    UNION ALL
    SELECT requests.resource, encounter, coalesce(requests.code, medications.code)
    FROM requests
    LEFT JOIN medications ON requests.medication = medications.id
    WHERE coalesce(status, '') NOT IN ('entered-in-error', 'cancelled') AND NOT coalesce(do_not_perform, false)
)
SELECT
    treatments.encounter AS encounter_id,
    coalesce(reason.code, conditions.code) AS cause,
    treatments.code AS effect
FROM reason
JOIN treatments ON reason.resource = treatments.resource
LEFT JOIN conditions ON reason.condition = conditions.id
WHERE coalesce(conditions.status, '') NOT IN ('entered-in-error', 'refuted')
