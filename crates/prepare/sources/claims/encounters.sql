-- A claim is an encounter, however many rows it has.
WITH each AS (
    SELECT
        claim_id,
        min(subject_id) AS subject_id,
        min(subject_id) <> max(subject_id) AS has_two_subjects,
        min(date_trunc('day', from_date)) AS first_day,
        max(date_trunc('day', coalesce(thru_date, from_date))) AS last_day,
        min(type) AS type,
        min(type) <> max(type) AS has_two_types,
        -- Emergency, urgent, elective, newborn, trauma; of other types it is not known.
        bool_or(CASE
            WHEN admission_type IN ('1', '2', '5', 'emergency', 'urgent', 'trauma') THEN true
            WHEN admission_type IN ('3', '4', 'elective', 'newborn') THEN false
        END) AS is_unplanned
    FROM claim_dates
    WHERE claim_id IS NOT NULL
    GROUP BY claim_id
    UNION ALL
    -- Rows of no claim are counted one by one; those of the long layout are events, which are.
    SELECT claim_id, subject_id, false, from_date, thru_date, type, false, NULL
    FROM claim_dates
    WHERE claim_id IS NULL AND $layout = 'wide'
),
readmitted AS (
    SELECT each.claim_id, bool_or($readmission = 'any' OR later.is_unplanned) AS is_certain
    FROM each
    JOIN each later ON each.subject_id = later.subject_id
        AND later.first_day >= each.last_day
        AND later.first_day <= each.last_day + $readmission_days
    WHERE each.type = 'inpatient' AND later.type = 'inpatient' AND later.claim_id IS NOT NULL
        AND ($readmission = 'any' OR coalesce(later.is_unplanned, true))
        AND (later.first_day > each.first_day OR (later.first_day = each.first_day AND later.claim_id > each.claim_id))
    GROUP BY each.claim_id
),
people AS (
    SELECT subject_id, min(date_trunc('day', death_date)) AS death FROM beneficiary GROUP BY subject_id
)
SELECT
    each.claim_id AS encounter_id,
    each.subject_id,
    first_day AS start,
    last_day AS "end",
    CASE
        WHEN has_two_subjects THEN 'two_subjects'
        WHEN has_two_types THEN 'two_types'
        WHEN $types IS NOT NULL
            AND NOT coalesce(array_has(string_to_array(replace(lower($types), ' ', ''), ','), type), false)
            THEN 'other_type'
        WHEN last_day < first_day THEN 'ends_before_start'
    END AS dropped,
    -- Admitted again in the days after discharge. Unknown for claims that are no admissions or have no dates, and,
    -- unless they were admitted again, for those who died before the days were over and where the claims end before.
    CASE
        WHEN coalesce(type, '') <> 'inpatient' OR last_day IS NULL OR death <= last_day THEN NULL
        WHEN readmitted.claim_id IS NOT NULL THEN is_certain
        WHEN death <= last_day + $readmission_days THEN NULL
        WHEN last_day + $readmission_days > (SELECT max(last_day) FROM each) THEN NULL
        ELSE false
    END AS readmission,
    -- Unknown for whoever is not among the beneficiaries.
    CASE
        WHEN people.subject_id IS NOT NULL AND last_day IS NOT NULL THEN coalesce(death <= last_day, false)
    END AS mortality
FROM each
LEFT JOIN readmitted ON each.claim_id = readmitted.claim_id
LEFT JOIN people ON each.subject_id = people.subject_id
