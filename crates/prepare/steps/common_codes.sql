-- The codes of a kind that not too few kept encounters have.
SELECT code
FROM (
    SELECT DISTINCT events.code, events.encounter_id
    FROM events
    JOIN accepted ON events.encounter_id = accepted.encounter_id
    WHERE accepted.dropped IS NULL AND events.dropped IS NULL AND events.kind = $kind
)
GROUP BY code
HAVING count(*) >= $least
ORDER BY code
