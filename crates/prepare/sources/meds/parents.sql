-- The parents of codes, all of them one level up.
SELECT children.code, parent AS group_code, described.description, 1 AS distance
FROM (SELECT code, unnest(parent_codes) AS parent FROM codes) AS children
LEFT JOIN (SELECT code, max(description) AS description FROM codes GROUP BY code) AS described
    ON children.parent = described.code
WHERE $word IS NULL OR starts_with(lower(parent), lower($word))
