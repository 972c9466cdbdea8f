-- Every encounter, which is an admission or a stay in a unit, and until when it is observed; a century is as good
-- as forever.
WITH taken AS (
    SELECT hadm_id AS encounter_id, subject_id, hadm_id, admittime AS start, dischtime AS "end"
    FROM admissions
    WHERE $encounters = 'admission'
    UNION ALL
    SELECT stay_id, subject_id, hadm_id, intime, outtime FROM icustays WHERE $encounters = 'icu'
)
SELECT
    *,
    CASE WHEN $observe_hours IS NOT NULL THEN arrow_cast(
        arrow_cast(start, 'Int64') + CAST(least($observe_hours, 876000) * 3600000000 AS BIGINT),
        'Timestamp(Microsecond, None)'
    ) END AS observed_until
FROM taken
