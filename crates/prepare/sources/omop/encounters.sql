-- A visit is an encounter. Concepts 9201 and 262 are admissions: inpatient, and inpatient by way of the emergency room.
WITH deaths AS (
    SELECT person_id, min(date_trunc('day', coalesce(death_date, death_day))) AS day FROM death GROUP BY person_id
),
observed AS (
    SELECT person_id, max(date_trunc('day', observation_period_end_date)) AS last_day
    FROM observation_period
    GROUP BY person_id
),
-- Days are compared and not moments, since either visit may have no more than a date.
readmitted AS (
    SELECT DISTINCT visits.visit_occurrence_id
    FROM visits
    JOIN visits later ON visits.person_id = later.person_id
        AND later.first_day >= visits.last_day
        AND later.first_day <= visits.last_day + INTERVAL '30 days'
    WHERE visits.visit_concept_id IN (9201, 262)
        AND later.visit_concept_id IN (9201, 262)
        AND (later.start > visits.start
            OR (later.start = visits.start AND later.visit_occurrence_id > visits.visit_occurrence_id))
)
SELECT
    visits.visit_occurrence_id AS encounter_id,
    visits.person_id AS subject_id,
    start,
    "end",
    'visit_occurrence' AS from_table,
    CASE
        WHEN NOT is_taken THEN 'other_visit_type'
        WHEN visits.last_day < first_day THEN 'ends_before_start'
    END AS dropped,
    -- Admitted again within 30 days after discharge. Unknown for visits that are no admissions or have no
    -- dates, and, unless they were admitted again, for those who died before the 30 days were over and who
    -- are not observed so long.
    CASE
        WHEN visit_concept_id NOT IN (9201, 262) OR visits.last_day IS NULL OR deaths.day <= visits.last_day THEN NULL
        WHEN readmitted.visit_occurrence_id IS NOT NULL THEN true
        WHEN deaths.day <= visits.last_day + INTERVAL '30 days' THEN NULL
        WHEN visits.last_day + INTERVAL '30 days' > coalesce(observed.last_day, (SELECT max(last_day) FROM visits))
            THEN NULL
        WHEN visit_concept_id IN (9201, 262) THEN false
    END AS readmission,
    -- Whoever is not in the table of deaths is alive, unless there is no such table.
    CASE WHEN $has_death AND visits.last_day IS NOT NULL
        THEN coalesce(deaths.day >= first_day AND deaths.day <= visits.last_day, false)
    END AS mortality
FROM visits
LEFT JOIN readmitted ON visits.visit_occurrence_id = readmitted.visit_occurrence_id
LEFT JOIN deaths ON visits.person_id = deaths.person_id
LEFT JOIN observed ON visits.person_id = observed.person_id
