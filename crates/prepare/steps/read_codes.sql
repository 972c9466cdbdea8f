SELECT kind, group_code, max(description) AS description, id
FROM codes
GROUP BY kind, group_code, id
ORDER BY kind, id
