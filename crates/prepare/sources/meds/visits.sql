-- The encounters, and where they lie in time. Those of one subject do not overlap: one ends where the next begins.
WITH boundaries AS (
    SELECT
        subject_id, time,
        bool_or(kind IN ('admission', 'icu_admission')) AS begins,
        bool_or(kind IN ('discharge', 'icu_discharge')) AS ends
    FROM data
    JOIN code_kinds ON data.code = code_kinds.code
    WHERE time IS NOT NULL
        AND ($encounters = 'admission' AND kind IN ('admission', 'discharge')
            OR $encounters = 'icu' AND kind IN ('icu_admission', 'icu_discharge'))
    GROUP BY subject_id, time
),
following AS (
    SELECT
        subject_id, time, begins, ends,
        -- What begins is open until the next boundary, whatever that is.
        coalesce(lag(begins) OVER subject, false) AS is_open,
        CASE WHEN lead(ends) OVER subject THEN lead(time) OVER subject END AS next_discharge
    FROM boundaries
    WINDOW subject AS (PARTITION BY subject_id ORDER BY time)
),
-- Birth is recorded at its time, and no reason for a visit.
moments AS (
    SELECT DISTINCT subject_id, time
    FROM data
    WHERE $encounters = 'gap' AND time IS NOT NULL AND code <> 'MEDS_BIRTH'
),
begun AS (
    SELECT
        subject_id, time,
        arrow_cast(time, 'Int64') - lag(arrow_cast(time, 'Int64')) OVER (PARTITION BY subject_id ORDER BY time)
            > $gap_hours * 3600000000 AS is_new
    FROM moments
),
counted AS (
    SELECT
        subject_id, time,
        sum(CASE WHEN is_new THEN 1 ELSE 0 END) OVER (PARTITION BY subject_id ORDER BY time) AS number
    FROM begun
),
found AS (
    SELECT subject_id, CAST(visit_id AS VARCHAR) AS visit, min(time) AS start, max(time) AS finish
    FROM data
    WHERE $encounters = 'visit' AND visit_id IS NOT NULL AND time IS NOT NULL
    GROUP BY subject_id, visit_id
    UNION ALL
    SELECT
        subject_id, CAST(NULL AS VARCHAR), time,
        CASE
            WHEN next_discharge IS NOT NULL THEN next_discharge
            -- A discharge at the time of an admission ends what was open, or else the visit that begins and
            -- has no other end.
            WHEN ends AND NOT is_open THEN time
            -- Without a discharge, a visit is open until the next.
            ELSE (SELECT max(time) FROM data)
        END
    FROM following
    WHERE begins
    UNION ALL
    SELECT subject_id, CAST(NULL AS VARCHAR), min(time), max(time) FROM counted GROUP BY subject_id, number
),
ordered AS (
    SELECT
        subject_id,
        coalesce(visit, CAST(row_number() OVER (PARTITION BY subject_id ORDER BY start, visit) AS VARCHAR)) AS visit,
        start,
        finish,
        lead(start) OVER (PARTITION BY subject_id ORDER BY start, visit) AS next_start,
        rank() OVER (PARTITION BY subject_id ORDER BY start) - 1 AS earlier_visits
    FROM found
),
visits AS (
    SELECT
        subject_id, visit, start, next_start, least(finish, next_start - INTERVAL '1 microsecond') AS "end",
        earlier_visits,
        -- When the visit before was over, which ended where this one begins at the latest.
        CASE WHEN earlier_visits > 0
            THEN lag(least(finish, next_start)) OVER (PARTITION BY subject_id ORDER BY start, visit)
        END AS last_end
    FROM ordered
),
-- The visit that goes on at the time of prediction, or the last one before.
labelled AS (
    SELECT
        task_labels.subject_id, visit, start, "end", earlier_visits, last_end,
        prediction_time,
        boolean_value
    FROM task_labels
    LEFT JOIN visits
        ON task_labels.subject_id = visits.subject_id
        AND prediction_time >= start
        AND coalesce(prediction_time < next_start, true)
    WHERE $per <> 'visit'
),
-- Visits before that of the last label are history, whole as they are.
last_labels AS (
    SELECT subject_id, max(start) AS start FROM labelled WHERE $per = 'history' GROUP BY subject_id
)
SELECT
    CAST(visits.subject_id AS VARCHAR) || ':' || visit AS encounter_id,
    visits.subject_id, visit, visits.start, "end", earlier_visits, last_end,
    arrow_cast(NULL, 'Timestamp(Microsecond, None)') AS prediction_time,
    CAST(NULL AS BOOLEAN) AS boolean_value
FROM visits
LEFT JOIN last_labels ON visits.subject_id = last_labels.subject_id
WHERE $per = 'visit' OR visits.start < last_labels.start
UNION ALL
SELECT
    CAST(subject_id AS VARCHAR) || '@' || CAST(prediction_time AS VARCHAR),
    subject_id, visit, start, "end", earlier_visits, last_end,
    prediction_time,
    boolean_value
FROM labelled
