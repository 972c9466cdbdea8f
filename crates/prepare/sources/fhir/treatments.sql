-- Every version of every procedure and request of a medication, and what is wrong with it. Of several, the
-- latest counts.
WITH medications AS (
    SELECT *
    FROM medication
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
)
SELECT resource, encounter, code, description, time, 'procedure' AS from_table,
       CASE
           WHEN row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) > 1
               THEN 'superseded'
           WHEN status = 'entered-in-error' THEN 'entered_in_error'
           WHEN status = 'not-done' THEN 'not_done'
       END AS wrong
FROM procedure
UNION ALL
SELECT requests.resource, encounter, coalesce(requests.code, medications.code),
       coalesce(requests.description, medications.description), time, 'medication_request', wrong
FROM (
    SELECT *,
           CASE
               WHEN row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) > 1
                   THEN 'superseded'
               WHEN status = 'entered-in-error' THEN 'entered_in_error'
               WHEN status = 'cancelled' OR do_not_perform THEN 'not_done'
           END AS wrong
    FROM medication_request
) AS requests
LEFT JOIN medications ON requests.medication = medications.id
