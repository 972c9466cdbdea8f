-- A person has a row per year; sex and race are coded as CMS does, or written out.
WITH people AS (
    SELECT subject_id, min(birth_date) AS birth, min(lower(sex)) AS sex, min(race) AS race
    FROM beneficiary
    GROUP BY subject_id
),
each AS (
    SELECT claim_id, min(subject_id) AS subject_id, min(date_trunc('day', from_date)) AS first_day, min(type) AS type
    FROM claim_dates
    WHERE claim_id IS NOT NULL
    GROUP BY claim_id
),
persons AS (
    SELECT
        claim_id,
        age_band(years_between(birth, first_day)) AS age,
        CASE
            WHEN sex IN ('1', 'm', 'male') THEN 'male'
            WHEN sex IN ('2', 'f', 'female') THEN 'female'
            WHEN sex = 'other' THEN 'other'
        END AS sex,
        CASE race
            WHEN '0' THEN NULL
            WHEN '1' THEN 'white'
            WHEN '2' THEN 'black'
            WHEN '3' THEN 'other'
            WHEN '4' THEN 'asian'
            WHEN '5' THEN 'hispanic'
            WHEN '6' THEN 'north american native'
            ELSE race
        END AS race
    FROM each
    JOIN people ON each.subject_id = people.subject_id
)
SELECT claim_id AS encounter_id, 'age' AS name, age AS value FROM persons
UNION ALL SELECT claim_id, 'sex', sex FROM persons
UNION ALL SELECT claim_id, 'race', race FROM persons
UNION ALL SELECT claim_id, 'visit', type FROM each
