-- The latest version of each encounter.
SELECT
    *,
    CASE
        WHEN status = 'entered-in-error' THEN 'entered_in_error'
        WHEN status IN ('planned', 'cancelled') THEN 'not_done'
    END AS wrong
FROM encounter
QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
