SELECT count(*)
FROM (SELECT 1 FROM encounters WHERE dropped IS NULL GROUP BY encounter_id HAVING count(*) > 1)
