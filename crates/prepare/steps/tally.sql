-- How many events have each code, each note, and each reason to be dropped.
SELECT
    kind,
    CASE WHEN dropped IS NULL THEN code END AS code,
    dropped,
    from_table,
    CASE WHEN dropped IS NULL THEN note END AS note,
    max(description) AS description,
    count(*) AS events,
    count(numeric_value) AS with_value
FROM events
GROUP BY 1, 2, 3, 4, 5
