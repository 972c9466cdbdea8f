WITH latest AS (
    SELECT
        *,
        CASE
            WHEN status = 'entered-in-error' THEN 'entered_in_error'
            WHEN status IN ('planned', 'cancelled') THEN 'not_done'
        END AS wrong
    FROM encounter
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
),
-- A stay in a ward is part of an admission, and no admission of its own.
admissions AS (
    SELECT id, patient, start, stop FROM latest
    WHERE class IN ('IMP', 'ACUTE', 'NONACUTE') AND part_of IS NULL AND wrong IS NULL
),
readmitted AS (
    SELECT DISTINCT admissions.id
    FROM admissions
    JOIN admissions later ON admissions.patient = later.patient
        AND later.start >= admissions.stop AND later.start <= admissions.stop + INTERVAL '30 days'
    WHERE admissions.id <> later.id
),
patients AS (
    SELECT *
    FROM patient
    QUALIFY row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) = 1
)
SELECT
    latest.id AS encounter_id,
    latest.patient AS subject_id,
    latest.start,
    latest.stop AS "end",
    CASE
        WHEN wrong IS NOT NULL THEN wrong
        WHEN $classes IS NOT NULL
            AND NOT coalesce(array_has(string_to_array(replace($classes, ' ', ''), ','), class), false) THEN 'other_class'
    END AS dropped,
    -- Admitted again within 30 days after discharge; unknown for encounters that are no admissions, or have no end.
    CASE WHEN admissions.id IS NOT NULL AND latest.stop IS NOT NULL
        THEN readmitted.id IS NOT NULL
    END AS readmission,
    -- Dead by the day on which the encounter ends; unknown where the day of death or the patient is.
    CASE WHEN patients.id IS NOT NULL AND last_day IS NOT NULL AND (NOT deceased OR deceased_day IS NOT NULL)
        THEN coalesce(deceased_day <= last_day, false)
    END AS mortality
FROM latest
LEFT JOIN admissions ON latest.id = admissions.id
LEFT JOIN readmitted ON latest.id = readmitted.id
LEFT JOIN patients ON latest.patient = patients.id
