-- Every version of every condition, and what is wrong with it. Of several, the latest counts.
SELECT
    *,
    CASE
        WHEN row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) > 1 THEN 'superseded'
        WHEN status = 'entered-in-error' THEN 'entered_in_error'
        WHEN status = 'refuted' THEN 'refuted'
    END AS wrong
FROM condition
