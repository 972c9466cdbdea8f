-- Subjects, and those with several encounters.
SELECT count(*), count(*) FILTER (WHERE n > 1)
FROM (SELECT subject_id, count(*) AS n FROM accepted WHERE dropped IS NULL GROUP BY subject_id)
