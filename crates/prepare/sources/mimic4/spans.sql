-- Where encounters lie in time: spans of 30 days let the engine find the encounter of a moment, or of a day, by
-- hashing; an encounter has at most a century of them. Those of one subject do not overlap: one ends where the
-- next begins, and a day belongs to the one that began last on it.
WITH ordered AS (
    SELECT *, lead(start) OVER (PARTITION BY subject_id ORDER BY start, encounter_id) AS next_start
    FROM visits
    WHERE "end" >= start
),
apart AS (
    SELECT
        encounter_id,
        subject_id,
        start,
        "end" AS discharge,
        observed_until,
        least("end", next_start - INTERVAL '1 microsecond') AS "end",
        date_trunc('day', start) AS first_day,
        least(date_trunc('day', "end"), date_trunc('day', next_start) - INTERVAL '1 day') AS last_day
    FROM ordered
)
SELECT
    *,
    unnest(generate_series(
        arrow_cast(first_day, 'Int64') / 2592000000000,
        least(arrow_cast("end", 'Int64') / 2592000000000, arrow_cast(first_day, 'Int64') / 2592000000000 + 1200)
    )) AS span
FROM apart
