-- Every visit with its moments and days, and whether the options take it. Days are there for visits that have
-- no more than a date, and are those of the zone in which the visit was recorded.
SELECT
    visit_occurrence_id,
    person_id,
    visit_concept_id,
    admitted_from_concept_id,
    coalesce(visit_start_datetime, visit_start_date) AS start,
    coalesce(visit_end_datetime, visit_end_date) AS "end",
    date_trunc('day', coalesce(visit_start_date, visit_start_day)) AS first_day,
    date_trunc('day', coalesce(visit_end_date, visit_end_day, visit_start_date, visit_start_day)) AS last_day,
    $visits IS NULL OR coalesce(
        array_has(string_to_array($visits, ','), CAST(visit_concept_id AS VARCHAR)), false
    ) AS is_taken
FROM visit_occurrence
