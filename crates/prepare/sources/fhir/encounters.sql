WITH
-- A stay in a ward is part of an admission, and no admission of its own.
admissions AS (
    SELECT id, patient, start, stop FROM visits
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
    visits.id AS encounter_id,
    visits.patient AS subject_id,
    visits.start,
    visits.stop AS "end",
    CASE
        WHEN wrong IS NOT NULL THEN wrong
        WHEN $classes IS NOT NULL
            AND NOT coalesce(array_has(string_to_array(replace($classes, ' ', ''), ','), class), false) THEN 'other_class'
    END AS dropped,
    -- Admitted again within 30 days after discharge; unknown for encounters that are no admissions, or have no end.
    CASE WHEN admissions.id IS NOT NULL AND visits.stop IS NOT NULL
        THEN readmitted.id IS NOT NULL
    END AS readmission,
    -- Dead by the day on which the encounter ends; unknown where the day of death or the patient is.
    CASE WHEN patients.id IS NOT NULL AND last_day IS NOT NULL AND (NOT deceased OR deceased_day IS NOT NULL)
        THEN coalesce(deceased_day <= last_day, false)
    END AS mortality
FROM visits
LEFT JOIN admissions ON visits.id = admissions.id
LEFT JOIN readmitted ON visits.id = readmitted.id
LEFT JOIN patients ON visits.patient = patients.id
