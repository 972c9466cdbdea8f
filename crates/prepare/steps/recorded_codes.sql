-- The codes of a kind, with how many events have them.
SELECT code, max(description) AS description, CAST(sum(events) AS BIGINT) AS events
FROM tally
WHERE dropped IS NULL AND kind = $kind
GROUP BY code
ORDER BY code
