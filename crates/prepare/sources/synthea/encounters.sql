WITH admissions AS (
    SELECT id, patient, start, stop FROM encounters WHERE lower(encounterclass) = 'inpatient'
),
returns AS (
    SELECT id, patient, start FROM encounters
    WHERE lower(encounterclass) = 'inpatient'
        OR ($readmission = 'acute' AND lower(encounterclass) IN ('emergency', 'urgentcare'))
),
readmitted AS (
    SELECT DISTINCT admissions.id
    FROM admissions
    JOIN returns later ON admissions.patient = later.patient
        AND later.start >= admissions.stop AND later.start <= admissions.stop + $readmission_days
    WHERE admissions.id <> later.id
),
-- Days are those of the zone in which the encounter was recorded.
ended AS (
    SELECT encounters.*, coalesce(stop_day, start_day) AS last_day, date_trunc('day', deathdate) AS death
    FROM encounters
    LEFT JOIN patients ON encounters.patient = patients.id
)
SELECT
    ended.id AS encounter_id,
    ended.patient AS subject_id,
    ended.start,
    ended.stop AS "end",
    'encounters' AS from_table,
    CASE
        WHEN $classes IS NOT NULL AND NOT coalesce(
            array_has(string_to_array(replace(lower($classes), ' ', ''), ','), lower(encounterclass)), false
        ) THEN 'other_class'
    END AS dropped,
    -- Admitted again in the days after discharge. Unknown for encounters that are no admissions or have no end,
    -- and, unless they were admitted again, for those who died before the days were over and where the export
    -- ends before.
    CASE
        WHEN admissions.id IS NULL OR ended.stop IS NULL OR death <= last_day THEN NULL
        WHEN readmitted.id IS NOT NULL THEN true
        WHEN death <= last_day + $readmission_days THEN NULL
        WHEN ended.stop + $readmission_days > (SELECT max(coalesce(stop, start)) FROM encounters) THEN NULL
        ELSE false
    END AS readmission,
    -- Dead by the day on which the encounter ends.
    CASE WHEN $has_patients AND last_day IS NOT NULL THEN coalesce(death <= last_day, false) END AS mortality
FROM ended
LEFT JOIN admissions ON ended.id = admissions.id
LEFT JOIN readmitted ON ended.id = readmitted.id
