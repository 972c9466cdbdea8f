-- The prediction is made at discharge. Whoever died, or went to a hospice, cannot come back.
SELECT
    encounter_id,
    patient_nbr AS subject_id,
    'diabetic_data' AS from_table,
    CASE
        WHEN discharge_disposition_id IN (11, 19, 20, 21) THEN 'died'
        WHEN discharge_disposition_id IN (13, 14) THEN 'hospice'
    END AS dropped,
    CASE
        WHEN readmitted = '<30' THEN true
        WHEN readmitted IN ('>30', 'NO') THEN false
    END AS readmission
FROM diabetic_data
