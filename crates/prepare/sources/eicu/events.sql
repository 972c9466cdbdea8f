-- Codes are the paths of the source in lower case, as the authors of the paper took them.
WITH recorded AS (
    SELECT patientunitstayid, 'diagnosis' AS kind, lower(admitdxpath) AS code, admitdxenteredoffset AS minute,
           CAST(NULL AS DOUBLE) AS numeric_value
    FROM admissiondx
    UNION ALL
    SELECT patientunitstayid, 'diagnosis', lower(diagnosisstring), diagnosisoffset, NULL FROM diagnosis
    UNION ALL
    SELECT patientunitstayid, 'treatment', lower(treatmentstring), treatmentoffset, NULL FROM treatment
    UNION ALL
    SELECT patientunitstayid, 'treatment', lower(drugname), drugstartoffset, NULL
    FROM medication
    WHERE $medications AND coalesce(drugordercancelled, 'No') <> 'Yes' AND drugname IS NOT NULL
    UNION ALL
    SELECT patientunitstayid, 'lab', lower(labname), labresultoffset, labresult FROM lab WHERE $labs
)
SELECT
    recorded.patientunitstayid AS encounter_id,
    kind,
    code,
    numeric_value,
    CASE
        WHEN abs(minute) > 52560000 THEN 'absurd_time'
        WHEN minute IS NULL AND ($after_discharge = 'drop' OR $observe_hours IS NOT NULL) THEN 'no_time'
        WHEN $after_discharge = 'drop' AND minute > patient.unitdischargeoffset THEN 'after_discharge'
        WHEN minute > $observe_hours * 60 THEN 'after_observation'
    END AS dropped
FROM recorded
LEFT JOIN patient ON recorded.patientunitstayid = patient.patientunitstayid
