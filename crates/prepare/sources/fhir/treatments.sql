-- The latest version of each procedure and request of a medication.
WITH medications AS (
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
)
SELECT resource, encounter, code, description,
       CASE status WHEN 'entered-in-error' THEN 'entered_in_error' WHEN 'not-done' THEN 'not_done' END AS wrong
FROM procedures
UNION ALL
SELECT requests.resource, encounter, coalesce(requests.code, medications.code),
       coalesce(requests.description, medications.description),
       CASE
           WHEN status = 'entered-in-error' THEN 'entered_in_error'
           WHEN status = 'cancelled' OR do_not_perform THEN 'not_done'
       END
FROM requests
LEFT JOIN medications ON requests.medication = medications.id
