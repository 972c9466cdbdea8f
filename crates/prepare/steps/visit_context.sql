-- Context that is made of the encounters of a subject. Those that began earlier count, also where a rule of the
-- source drops them, unless the rule says that they did not take place; one that has not ended yet ended 0 days
-- ago. Nothing is said of an encounter whose prediction comes before its start.
WITH visits AS (
    SELECT *, greatest("end", start) AS finish
    FROM (
        SELECT
            CAST(encounter_id AS VARCHAR) AS encounter_id,
            CAST(subject_id AS VARCHAR) AS subject_id,
            arrow_cast(start, 'Timestamp(Microsecond, None)') AS start,
            arrow_cast("end", 'Timestamp(Microsecond, None)') AS "end",
            arrow_cast(prediction_time, 'Timestamp(Microsecond, None)') AS prediction_time,
            dropped
        FROM (SELECT encounter_id, subject_id, $columns FROM $encounters)
    )
    WHERE subject_id IS NOT NULL AND start IS NOT NULL
        AND coalesce(dropped, '') NOT IN ('superseded', 'entered_in_error', 'not_done')
),
starts AS (
    SELECT subject_id, start, count(*) AS visits, max(finish) AS finish FROM visits GROUP BY subject_id, start
),
earlier AS (
    SELECT
        subject_id,
        start,
        sum(visits) OVER (
            PARTITION BY subject_id ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS visits,
        max(finish) OVER (
            PARTITION BY subject_id ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS finish
    FROM starts
),
known AS (
    SELECT
        encounter_id,
        earlier.visits AS earlier_visits,
        arrow_cast(visits.start, 'Int64') - arrow_cast(least(earlier.finish, visits.start), 'Int64') AS since,
        arrow_cast("end", 'Int64') - arrow_cast(visits.start, 'Int64') AS stay
    FROM visits
    JOIN earlier ON visits.subject_id = earlier.subject_id AND visits.start = earlier.start
    WHERE coalesce(prediction_time >= visits.start, true)
)
SELECT encounter_id, 'earlier_visits' AS name, visits_band(coalesce(earlier_visits, 0)) AS value,
       CAST(NULL AS DOUBLE) AS numeric_value
FROM known
UNION ALL
SELECT encounter_id, 'days_since_last_visit',
       CASE WHEN earlier_visits IS NOT NULL THEN days_band(since / 86400000000) END, NULL
FROM known
UNION ALL
SELECT encounter_id, 'length_of_stay', NULL, CASE WHEN stay >= 0 THEN stay / CAST(86400000000 AS DOUBLE) END
FROM known
