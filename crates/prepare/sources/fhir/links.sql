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
    SELECT resource, encounter, CASE WHEN status IN ('entered-in-error', 'not-done') THEN NULL ELSE code END AS code
    FROM procedures
    UNION ALL
    SELECT requests.resource, encounter,
           CASE WHEN status IN ('entered-in-error', 'cancelled') OR do_not_perform THEN NULL
               ELSE coalesce(requests.code, medications.code)
           END
    FROM requests
    LEFT JOIN medications ON requests.medication = medications.id
)
-- What is wrong becomes null, which links nothing. As a condition after the outer join it made DataFusion 55 lose every row of
-- 9,000, where 2,400 came through.
SELECT
    treatments.encounter AS encounter_id,
    CASE WHEN conditions.status IN ('entered-in-error', 'refuted') THEN NULL
        ELSE coalesce(reason.code, conditions.code)
    END AS cause,
    treatments.code AS effect
FROM reason
JOIN treatments ON reason.resource = treatments.resource
LEFT JOIN conditions ON reason.condition = conditions.id
