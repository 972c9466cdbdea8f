-- The latest version of each condition.
SELECT
    *,
    CASE status WHEN 'entered-in-error' THEN 'entered_in_error' WHEN 'refuted' THEN 'refuted' END AS wrong
FROM condition
QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
