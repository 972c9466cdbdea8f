-- A label per onset: whether the first of its diagnoses is made in the days at risk, counted from the last day of the
-- encounter. A diagnosis is made at the start of its encounter. Days are numbers here. The note says why a label is not
-- known.
WITH stays AS (
    SELECT
        encounter_id,
        subject_id,
        start,
        finish,
        arrow_cast(date_trunc('day', start), 'Int64') / 86400000000 AS first_day,
        arrow_cast(date_trunc('day', finish), 'Int64') / 86400000000 AS last_day,
        finish = date_trunc('day', finish) AS ends_with_day
    FROM (
        SELECT
            CAST(encounter_id AS VARCHAR) AS encounter_id,
            CAST(subject_id AS VARCHAR) AS subject_id,
            arrow_cast(start, 'Timestamp(Microsecond, None)') AS start,
            arrow_cast(greatest("end", start), 'Timestamp(Microsecond, None)') AS finish,
            dropped
        FROM (SELECT encounter_id, subject_id, $columns FROM source_encounters)
    )
    -- These did not take place.
    WHERE subject_id IS NOT NULL AND coalesce(dropped, '') NOT IN ('superseded', 'entered_in_error', 'not_done')
),
made AS (
    SELECT
        label,
        coalesce(stays.subject_id, onsets.subject_id) AS subject_id,
        min(coalesce(start, made)) AS made,
        min(coalesce(first_day, arrow_cast(date_trunc('day', made), 'Int64') / 86400000000)) AS day_made,
        bool_or(coalesce(start, made) IS NULL) AS has_no_date
    FROM onsets
    LEFT JOIN stays ON onsets.encounter_id = stays.encounter_id
    GROUP BY 1, 2
),
-- The last that is known of subjects.
seen AS (
    SELECT subject_id, max(last_day) AS until FROM stays GROUP BY subject_id
),
found AS (
    SELECT
        stays.encounter_id,
        labels.label,
        CASE
            -- An end without a time of day is the end of that day.
            WHEN made <= finish OR (ends_with_day AND day_made = last_day) THEN 'had_already'
            WHEN finish IS NULL OR has_no_date THEN 'no_date'
            WHEN day_made < last_day + $first THEN 'too_early'
            WHEN day_made <= last_day + $last THEN 'begins'
            WHEN coalesce($until < last_day + $last, true) THEN 'not_observed'
            ELSE 'stays_out'
        END AS outcome
    FROM stays
    CROSS JOIN (SELECT DISTINCT label FROM onset_codes) AS labels
    LEFT JOIN made ON stays.subject_id = made.subject_id AND labels.label = made.label
    LEFT JOIN seen ON stays.subject_id = seen.subject_id
    $join_observed
)
SELECT
    encounter_id,
    label,
    CASE outcome WHEN 'begins' THEN true WHEN 'stays_out' THEN false END AS value,
    CASE WHEN outcome NOT IN ('begins', 'stays_out') THEN outcome END AS note,
    CASE WHEN $is_dropped AND outcome = 'had_already' THEN concat('had_', label) END AS dropped
FROM found
