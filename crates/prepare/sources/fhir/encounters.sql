WITH
-- A stay in a ward is part of an admission, and no admission of its own.
admissions AS (
    SELECT id, patient, start, stop FROM visits
    WHERE class IN ('IMP', 'ACUTE', 'NONACUTE') AND part_of IS NULL AND wrong IS NULL
),
returns AS (
    SELECT id, patient, start FROM visits
    WHERE class IN ('IMP', 'ACUTE', CASE $readmission WHEN 'acute' THEN 'EMER' ELSE 'NONACUTE' END)
        AND part_of IS NULL AND wrong IS NULL
),
readmitted AS (
    SELECT DISTINCT admissions.id
    FROM admissions
    JOIN returns later ON admissions.patient = later.patient
        AND later.start >= admissions.stop AND later.start <= admissions.stop + $readmission_days
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
    'encounter' AS from_table,
    CASE
        WHEN wrong IS NOT NULL THEN wrong
        WHEN $classes IS NOT NULL
            AND NOT coalesce(array_has(string_to_array(replace(upper($classes), ' ', ''), ','), upper(class)), false)
            THEN 'other_class'
    END AS dropped,
    -- Admitted again in the days after discharge. Unknown for encounters that are no admissions or have no end,
    -- and, unless they were admitted again, for those who died before the days were over, or it is not known
    -- when, and where the records end before.
    CASE
        WHEN admissions.id IS NULL OR visits.stop IS NULL OR deceased_day <= last_day THEN NULL
        WHEN readmitted.id IS NOT NULL THEN true
        WHEN deceased AND coalesce(deceased_day <= last_day + $readmission_days, true) THEN NULL
        WHEN visits.stop + $readmission_days > (SELECT max(coalesce(stop, start)) FROM visits) THEN NULL
        ELSE false
    END AS readmission,
    -- Dead by the day on which the encounter ends; unknown where the day of death or the patient is.
    CASE WHEN patients.id IS NOT NULL AND last_day IS NOT NULL AND (NOT deceased OR deceased_day IS NOT NULL)
        THEN coalesce(deceased_day <= last_day, false)
    END AS mortality
FROM visits
LEFT JOIN admissions ON visits.id = admissions.id
LEFT JOIN readmitted ON visits.id = readmitted.id
LEFT JOIN patients ON visits.patient = patients.id
