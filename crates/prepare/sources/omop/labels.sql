-- A label per cohort: whether the person enters it in the days at risk, counted from the last day of the visit.
-- Days are numbers here. The note says why a label is not known.
WITH stays AS (
    SELECT
        visit_occurrence_id,
        person_id,
        arrow_cast(first_day, 'Int64') / 86400000000 AS first_day,
        arrow_cast(last_day, 'Int64') / 86400000000 AS last_day,
        arrow_cast(last_day, 'Int64') / 86400000000 + array_element($within, 1) AS risk_begins,
        arrow_cast(last_day, 'Int64') / 86400000000 + array_element($within, 2) AS risk_ends
    FROM visits
),
-- Who has no last day in a cohort stays in it.
members AS (
    SELECT
        cohort_definition_id,
        subject_id,
        arrow_cast(date_trunc('day', cohort_start_date), 'Int64') / 86400000000 AS enters,
        coalesce(arrow_cast(date_trunc('day', cohort_end_date), 'Int64') / 86400000000, 9999999) AS leaves
    FROM cohort
    WHERE $cohort IS NOT NULL
        AND cohort_start_date IS NOT NULL
        AND ($cohort = '' OR CAST(cohort_definition_id AS VARCHAR) = $cohort)
),
definitions AS (
    SELECT DISTINCT cohort_definition_id FROM members
),
met AS (
    SELECT
        visit_occurrence_id,
        cohort_definition_id,
        bool_or(enters BETWEEN risk_begins AND risk_ends) AS enters,
        bool_or(enters < risk_begins AND leaves >= first_day) AS is_in_already
    FROM stays
    JOIN members ON person_id = subject_id
    GROUP BY visit_occurrence_id, cohort_definition_id
),
deaths AS (
    SELECT person_id, min(arrow_cast(date_trunc('day', coalesce(death_date, death_day)), 'Int64') / 86400000000) AS day
    FROM death
    GROUP BY person_id
),
found AS (
    SELECT
        stays.visit_occurrence_id,
        definitions.cohort_definition_id,
        CASE
            WHEN first_day IS NULL OR last_day IS NULL THEN 'no_date'
            WHEN is_in_already THEN 'in_cohort_already'
            WHEN met.enters THEN 'enters'
            WHEN deaths.day <= risk_ends THEN 'died'
            -- Without a period of the person, until the last day of any visit.
            WHEN observed.encounter_id IS NULL AND risk_ends > (SELECT max(last_day) FROM stays)
                THEN 'not_observed'
            WHEN observed.encounter_id IS NOT NULL
                AND coalesce(risk_ends > arrow_cast(until, 'Int64') / 86400000000, true)
                THEN 'not_observed'
            ELSE 'stays_out'
        END AS outcome
    FROM stays
    CROSS JOIN definitions
    LEFT JOIN met
        ON stays.visit_occurrence_id = met.visit_occurrence_id
        AND definitions.cohort_definition_id = met.cohort_definition_id
    LEFT JOIN observed ON stays.visit_occurrence_id = observed.encounter_id
    LEFT JOIN deaths ON stays.person_id = deaths.person_id
)
SELECT
    visit_occurrence_id AS encounter_id,
    concat('cohort_', cohort_definition_id) AS label,
    CASE outcome WHEN 'enters' THEN true WHEN 'stays_out' THEN false END AS value,
    CASE WHEN outcome NOT IN ('enters', 'stays_out') THEN outcome END AS note
FROM found
