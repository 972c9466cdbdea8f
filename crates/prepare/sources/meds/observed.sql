-- A subject is observed until the last event.
SELECT encounter_id, until
FROM visits
JOIN (SELECT subject_id, max(time) AS until FROM data GROUP BY subject_id) AS seen
    ON visits.subject_id = seen.subject_id
