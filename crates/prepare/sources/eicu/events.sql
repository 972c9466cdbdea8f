-- Codes are the paths of the source in lower case, as the authors of the paper took them.
WITH recorded AS (
    SELECT patientunitstayid, 'diagnosis' AS kind, lower(admitdxpath) AS code, admitdxenteredoffset AS minute,
           CAST(NULL AS DOUBLE) AS numeric_value, CAST(NULL AS VARCHAR) AS wrong, 'admissiondx' AS from_table
    FROM admissiondx
    UNION ALL
    SELECT patientunitstayid, 'diagnosis', lower(diagnosisstring), diagnosisoffset, NULL, NULL, 'diagnosis'
    FROM diagnosis
    UNION ALL
    SELECT patientunitstayid, 'treatment', lower(treatmentstring), treatmentoffset, NULL, NULL, 'treatment'
    FROM treatment
    UNION ALL
    SELECT patientunitstayid, 'treatment', lower(drugname), drugstartoffset, NULL,
           CASE WHEN drugordercancelled = 'Yes' THEN 'cancelled' WHEN drugname IS NULL THEN 'no_drug_name' END,
           'medication'
    FROM medication
    WHERE $medications
    UNION ALL
    SELECT patientunitstayid, 'lab', lower(labname), labresultoffset, labresult, NULL, 'lab' FROM lab WHERE $labs
)
SELECT
    recorded.patientunitstayid AS encounter_id,
    kind,
    code,
    numeric_value,
    from_table,
    CASE
        WHEN wrong IS NOT NULL THEN wrong
        WHEN minute NOT BETWEEN -52560000 AND 52560000 THEN 'absurd_time'
        WHEN minute IS NULL AND ($after_discharge = 'drop' OR $observe_hours IS NOT NULL) THEN 'no_time'
        WHEN $after_discharge = 'drop' AND minute > patient.unitdischargeoffset THEN 'after_discharge'
        WHEN minute > $observe_hours * 60 THEN 'after_observation'
    END AS dropped
FROM recorded
LEFT JOIN patient ON recorded.patientunitstayid = patient.patientunitstayid
