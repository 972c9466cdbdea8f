-- A visit is an encounter. Concepts 9201 and 262 are admissions: inpatient, and inpatient by way of the emergency room.
WITH deaths AS (
    SELECT person_id, min(date_trunc('day', coalesce(death_date, death_day))) AS day FROM death GROUP BY person_id
),
observed AS (
    SELECT person_id, max(date_trunc('day', observation_period_end_date)) AS last_day
    FROM observation_period
    GROUP BY person_id
),
-- Whether a visit counts as a readmission. Who came by way of the emergency room (262, or from 8870 or 9203) was not
-- expected; of an admission that does not say from where, that is not known.
returns AS (
    SELECT
        *,
        CASE
            WHEN $readmission = 'acute' AND visit_concept_id = 9203 THEN true
            WHEN NOT coalesce(visit_concept_id IN (9201, 262), false) THEN false
            WHEN $readmission <> 'unplanned' OR visit_concept_id = 262 THEN true
            WHEN admitted_from_concept_id <> 0 THEN admitted_from_concept_id IN (8870, 9203)
        END AS counts
    FROM visits
),
-- Days are compared and not moments, since either visit may have no more than a date.
readmitted AS (
    SELECT visits.visit_occurrence_id, bool_or(counts) AS is_certain
    FROM visits
    JOIN returns later ON visits.person_id = later.person_id
        AND later.first_day >= visits.last_day
        AND later.first_day <= visits.last_day + $readmission_days
    WHERE visits.visit_concept_id IN (9201, 262)
        AND coalesce(counts, true)
        AND (later.start > visits.start
            OR (later.start = visits.start AND later.visit_occurrence_id > visits.visit_occurrence_id))
    GROUP BY visits.visit_occurrence_id
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
    -- Admitted again in the days after discharge. Unknown for visits that are no admissions or have no dates,
    -- and, unless they were admitted again, for those who died before the days were over and who are not
    -- observed so long.
    CASE
        WHEN visit_concept_id NOT IN (9201, 262) OR visits.last_day IS NULL OR deaths.day <= visits.last_day THEN NULL
        WHEN readmitted.visit_occurrence_id IS NOT NULL THEN is_certain
        WHEN deaths.day <= visits.last_day + $readmission_days THEN NULL
        WHEN visits.last_day + $readmission_days > coalesce(observed.last_day, (SELECT max(last_day) FROM visits))
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
