-- Codes, numbered within their kind. Codes of one group have one number.
SELECT
    kind,
    code,
    group_code,
    description,
    arrow_cast(dense_rank() OVER (PARTITION BY kind ORDER BY group_code) - 1, 'UInt32') AS id
FROM (
    SELECT kind, code, group_code, max(description) AS description
    FROM rolled
    WHERE dropped IS NULL
    GROUP BY kind, code, group_code
)
