-- Until which day the person is observed without a gap, from the last day of the visit on, and alive; no day if that day
-- is in no period. Persons without any period have no rows.
WITH deaths AS (
    SELECT person_id, min(date_trunc('day', coalesce(death_date, death_day))) AS death FROM death GROUP BY person_id
),
periods AS (
    SELECT
        visit_occurrence_id,
        visits.person_id,
        max(CASE
            WHEN coalesce(date_trunc('day', observation_period_start_date) <= last_day, true)
                AND date_trunc('day', observation_period_end_date) >= last_day
                THEN date_trunc('day', observation_period_end_date)
        END) AS ends
    FROM visits
    JOIN observation_period ON visits.person_id = observation_period.person_id
    GROUP BY visit_occurrence_id, visits.person_id
)
SELECT
    visit_occurrence_id AS encounter_id,
    CASE WHEN ends IS NOT NULL THEN least(ends, death) END AS until
FROM periods
LEFT JOIN deaths ON periods.person_id = deaths.person_id
