-- The nearest groups of the codes of a kind that events have.
SELECT code, group_code, description
FROM (
    SELECT found.*, rank() OVER (PARTITION BY found.code ORDER BY distance) AS place
    FROM (
        SELECT code, group_code, max(description) AS description, min(distance) AS distance
        FROM source_groups
        WHERE group_code <> '' AND octet_length(group_code) <= 1000
        GROUP BY code, group_code
    ) AS found
    JOIN (
        SELECT DISTINCT code FROM tally WHERE dropped IS NULL AND kind = $kind
    ) AS recorded ON found.code = recorded.code
)
WHERE place = 1
ORDER BY code, group_code
