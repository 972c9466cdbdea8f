WITH admissions AS (
    SELECT id, lead(start) OVER (PARTITION BY patient ORDER BY start, id) AS next_admission
    FROM encounters
    WHERE encounterclass = 'inpatient'
)
SELECT
    encounters.id AS encounter_id,
    patient AS subject_id,
    start,
    stop AS "end",
    CASE
        WHEN $classes IS NOT NULL
            AND NOT coalesce(array_has(string_to_array($classes, ','), encounterclass), false) THEN 'other_class'
    END AS dropped,
    -- Admitted again within 30 days after discharge; unknown for encounters that are no admissions.
    CASE WHEN admissions.id IS NOT NULL
        THEN coalesce(next_admission <= stop + INTERVAL '30 days', false)
    END AS readmission,
    -- Dead by the day on which the encounter ends.
    CASE WHEN (SELECT count(*) FROM patients) > 0
        THEN coalesce(deathdate < date_trunc('day', coalesce(stop, start)) + INTERVAL '1 day', false)
    END AS mortality
FROM encounters
LEFT JOIN admissions ON encounters.id = admissions.id
LEFT JOIN patients ON encounters.patient = patients.id
