-- An encounter is a stay in a unit. Times are minutes since admission to the unit.
SELECT
    patientunitstayid AS encounter_id,
    uniquepid AS subject_id,
    CASE
        WHEN unitdischargeoffset IS NULL THEN 'no_discharge_time'
        WHEN unitdischargeoffset NOT BETWEEN 0 AND 52560000 THEN 'absurd_time'
        WHEN unitdischargeoffset > $max_hours * 60 THEN 'stay_too_long'
    END AS dropped,
    -- Another stay in a unit follows in the same stay in the hospital; unknown where either is not recorded.
    CASE WHEN patienthealthsystemstayid IS NOT NULL AND hospitaladmitoffset IS NOT NULL THEN
        row_number() OVER (
            PARTITION BY patienthealthsystemstayid ORDER BY hospitaladmitoffset, patientunitstayid DESC
        ) > 1
    END AS readmission,
    CASE $mortality WHEN 'unit' THEN unitdischargestatus ELSE hospitaldischargestatus END = 'Expired' AS mortality
FROM patient
