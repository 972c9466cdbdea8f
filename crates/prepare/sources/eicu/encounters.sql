-- An encounter is a stay in a unit. Times are minutes since admission to the unit.
SELECT
    patientunitstayid AS encounter_id,
    uniquepid AS subject_id,
    'patient' AS from_table,
    CASE
        WHEN unitdischargeoffset IS NULL THEN 'no_discharge_time'
        WHEN unitdischargeoffset NOT BETWEEN 0 AND 52560000 THEN 'absurd_time'
        WHEN unitdischargeoffset > $max_hours * 60 THEN 'stay_too_long'
        -- What is to be predicted would lie inside of what is known.
        WHEN $early_ends = 'drop' AND unitdischargeoffset <= $observe_hours * 60 THEN 'ends_in_observation'
    END AS dropped,
    -- Another stay in a unit follows in the same stay in the hospital; unknown where either is not recorded,
    -- and for those who died, who could not come back.
    CASE
        WHEN patienthealthsystemstayid IS NULL OR hospitaladmitoffset IS NULL THEN NULL
        WHEN $readmission_of_dead = 'unknown' AND unitdischargestatus = 'Expired' THEN NULL
        WHEN row_number() OVER (
            PARTITION BY patienthealthsystemstayid ORDER BY hospitaladmitoffset, patientunitstayid DESC
        ) > 1 THEN true
        WHEN $readmission_of_dead = 'unknown' AND hospitaldischargestatus = 'Expired' THEN NULL
        ELSE false
    END AS readmission,
    CASE $mortality WHEN 'unit' THEN unitdischargestatus ELSE hospitaldischargestatus END = 'Expired' AS mortality
FROM patient
