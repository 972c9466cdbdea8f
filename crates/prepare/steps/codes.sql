-- Codes, numbered within their kind.
SELECT
    kind,
    code,
    max(description) AS description,
    arrow_cast(row_number() OVER (PARTITION BY kind ORDER BY code) - 1, 'UInt32') AS id
FROM tally
WHERE dropped IS NULL
GROUP BY kind, code
