-- The links of each encounter.
SELECT
    encounter_id,
    array_agg(named_struct('cause', cause, 'effect', effect)) AS links,
    count(*) AS links_read
FROM link_ends
WHERE dropped IS NULL
GROUP BY encounter_id
