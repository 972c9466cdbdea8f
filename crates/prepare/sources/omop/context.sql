-- Concepts by name: common ones as they are called here, others as the table of concepts calls them, or by number.
-- A concept of 0 says that there is none.
WITH names AS (
    SELECT concept_id, max(concept_name) AS name FROM concept GROUP BY concept_id
),
people AS (
    SELECT
        person_id,
        -- Without the cast the engine would count nanoseconds, which some years are beyond.
        min(coalesce(birth_datetime, arrow_cast(make_date(
            CASE WHEN year_of_birth BETWEEN 1 AND 9999 THEN year_of_birth END,
            CASE WHEN month_of_birth BETWEEN 1 AND 12 THEN month_of_birth ELSE 1 END,
            CASE WHEN day_of_birth BETWEEN 1 AND 28 THEN day_of_birth ELSE 1 END
        ), 'Timestamp(Microsecond, None)'))) AS birth,
        min(gender_concept_id) AS gender,
        min(race_concept_id) AS race,
        min(ethnicity_concept_id) AS ethnicity
    FROM person
    GROUP BY person_id
),
persons AS (
    SELECT
        visit_occurrence_id AS encounter_id,
        age_band(years_between(birth, start)) AS age,
        CASE gender WHEN 8532 THEN 'female' WHEN 8507 THEN 'male' WHEN 8521 THEN 'other' END AS sex,
        CASE race
            WHEN 8527 THEN 'white'
            WHEN 8516 THEN 'black or african american'
            WHEN 8515 THEN 'asian'
            WHEN 8657 THEN 'american indian or alaska native'
            WHEN 8557 THEN 'native hawaiian or other pacific islander'
            WHEN 8552 THEN NULL
            WHEN 0 THEN NULL
            ELSE coalesce(races.name, CAST(race AS VARCHAR))
        END AS race,
        CASE ethnicity
            WHEN 38003563 THEN 'hispanic or latino'
            WHEN 38003564 THEN 'not hispanic or latino'
            WHEN 0 THEN NULL
            ELSE coalesce(ethnicities.name, CAST(ethnicity AS VARCHAR))
        END AS ethnicity
    FROM visits
    JOIN people ON visits.person_id = people.person_id
    LEFT JOIN names races ON people.race = races.concept_id
    LEFT JOIN names ethnicities ON people.ethnicity = ethnicities.concept_id
),
visited AS (
    SELECT
        visit_occurrence_id AS encounter_id,
        CASE visit_concept_id
            WHEN 9201 THEN 'inpatient'
            WHEN 9202 THEN 'outpatient'
            WHEN 9203 THEN 'emergency'
            WHEN 262 THEN 'emergency and inpatient'
            WHEN 0 THEN NULL
            ELSE coalesce(types.name, CAST(visit_concept_id AS VARCHAR))
        END AS visit,
        coalesce(sources.name, CAST(nullif(admitted_from_concept_id, 0) AS VARCHAR), admitted_from_source_value)
            AS admission_source,
        coalesce(targets.name, CAST(nullif(discharged_to_concept_id, 0) AS VARCHAR), discharged_to_source_value)
            AS discharge
    FROM visit_occurrence
    LEFT JOIN names types ON visit_concept_id = types.concept_id
    LEFT JOIN names sources ON nullif(admitted_from_concept_id, 0) = sources.concept_id
    LEFT JOIN names targets ON nullif(discharged_to_concept_id, 0) = targets.concept_id
)
SELECT encounter_id, 'age' AS name, age AS value FROM persons
UNION ALL SELECT encounter_id, 'sex', sex FROM persons
UNION ALL SELECT encounter_id, 'race', race FROM persons
UNION ALL SELECT encounter_id, 'ethnicity', ethnicity FROM persons
UNION ALL SELECT encounter_id, 'visit', visit FROM visited
UNION ALL SELECT encounter_id, 'admission_source', admission_source FROM visited
UNION ALL SELECT encounter_id, 'discharge', discharge FROM visited
