-- Outcomes of an admission are also those of its stays in units.
WITH deaths AS (
    SELECT subject_id, min(date_trunc('day', dod)) AS day FROM patients GROUP BY subject_id
),
readmitted AS (
    SELECT DISTINCT admissions.hadm_id
    FROM admissions
    JOIN admissions later ON admissions.subject_id = later.subject_id
        AND later.admittime >= admissions.dischtime
        AND later.admittime <= admissions.dischtime + $readmission_days
    WHERE (later.admittime > admissions.admittime
            OR (later.admittime = admissions.admittime AND later.hadm_id > admissions.hadm_id))
        AND ($readmission = 'any'
            OR coalesce(upper(later.admission_type) NOT IN ('ELECTIVE', 'SURGICAL SAME DAY ADMISSION'), true))
),
outcomes AS (
    SELECT
        admissions.hadm_id,
        hospital_expire_flag,
        deathtime,
        -- Admitted again in the days after discharge. Unknown for those who died in the hospital, and, unless
        -- they were admitted again, for those who died before the days were over and where the data end before.
        CASE
            WHEN dischtime IS NULL OR hospital_expire_flag OR deathtime <= dischtime THEN NULL
            WHEN deaths.day <= date_trunc('day', dischtime) THEN NULL
            WHEN readmitted.hadm_id IS NOT NULL THEN true
            WHEN deaths.day <= dischtime + $readmission_days THEN NULL
            WHEN dischtime + $readmission_days > (SELECT max(dischtime) FROM admissions) THEN NULL
            ELSE false
        END AS readmission
    FROM admissions
    LEFT JOIN readmitted ON admissions.hadm_id = readmitted.hadm_id
    LEFT JOIN deaths ON admissions.subject_id = deaths.subject_id
)
SELECT
    encounter_id,
    subject_id,
    start,
    "end",
    observed_until AS prediction_time,
    CASE $encounters WHEN 'admission' THEN 'admissions' ELSE 'icustays' END AS from_table,
    CASE
        WHEN start IS NULL THEN 'no_start_time'
        WHEN "end" IS NULL THEN 'no_discharge_time'
        WHEN "end" < start THEN 'ends_before_start'
        -- What is to be predicted would lie inside of what is known.
        WHEN $early_ends = 'drop' AND "end" <= observed_until THEN 'ends_in_observation'
    END AS dropped,
    readmission,
    -- For a stay, death in the unit: unknown if the patient died in the hospital and nobody wrote when.
    CASE
        WHEN $encounters = 'admission' THEN hospital_expire_flag
        WHEN hospital_expire_flag AND deathtime IS NULL THEN NULL
        WHEN outcomes.hadm_id IS NOT NULL THEN coalesce(deathtime BETWEEN start AND "end", false)
    END AS mortality,
    arrow_cast("end", 'Int64') - arrow_cast(start, 'Int64') > $long_stay_days * 86400000000 AS long_stay
FROM visits
LEFT JOIN outcomes ON visits.hadm_id = outcomes.hadm_id
