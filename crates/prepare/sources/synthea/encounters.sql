WITH admissions AS (
    SELECT id, patient, start, stop FROM encounters WHERE encounterclass = 'inpatient'
),
readmitted AS (
    SELECT DISTINCT admissions.id
    FROM admissions
    JOIN admissions later ON admissions.patient = later.patient
        AND later.start >= admissions.stop AND later.start <= admissions.stop + INTERVAL '30 days'
    WHERE admissions.id <> later.id
)
SELECT
    encounters.id AS encounter_id,
    encounters.patient AS subject_id,
    encounters.start,
    encounters.stop AS "end",
    CASE
        WHEN $classes IS NOT NULL
            AND NOT coalesce(array_has(string_to_array(replace($classes, ' ', ''), ','), encounterclass), false) THEN 'other_class'
    END AS dropped,
    -- Admitted again within 30 days after discharge; unknown for encounters that are no admissions, or have no end.
    CASE WHEN admissions.id IS NOT NULL AND encounters.stop IS NOT NULL THEN readmitted.id IS NOT NULL END AS readmission,
    -- Dead by the day on which the encounter ends.
    CASE WHEN (SELECT count(*) FROM patients) > 0 AND coalesce(encounters.stop, encounters.start) IS NOT NULL
        THEN coalesce(
            deathdate < date_trunc('day', coalesce(encounters.stop, encounters.start)) + INTERVAL '1 day', false
        )
    END AS mortality
FROM encounters
LEFT JOIN admissions ON encounters.id = admissions.id
LEFT JOIN readmitted ON encounters.id = readmitted.id
LEFT JOIN patients ON encounters.patient = patients.id
