-- MIMIC-III has ICD-9 alone, in a column of that name; MIMIC-IV has codes with a version. Neither has dots.
WITH diagnoses AS (
    SELECT subject_id, hadm_id, icd_code,
           CASE WHEN icd9_code IS NOT NULL OR icd_version = 9 THEN 'ICD9CM:' WHEN icd_version = 10 THEN 'ICD10CM:' END
               || coalesce(icd9_code, icd_code) AS code
    FROM diagnoses_icd
),
procedures AS (
    SELECT subject_id, hadm_id, icd_code, chartdate,
           CASE
               WHEN icd9_code IS NOT NULL OR icd_version = 9 THEN 'ICD9PROC:'
               WHEN icd_version = 10 THEN 'ICD10PCS:'
           END || coalesce(icd9_code, icd_code) AS code
    FROM procedures_icd
),
diagnosis_titles AS (
    SELECT CASE WHEN icd9_code IS NOT NULL OR icd_version = 9 THEN 'ICD9CM:' WHEN icd_version = 10 THEN 'ICD10CM:' END
               || coalesce(icd9_code, icd_code) AS code,
           max(long_title) AS title
    FROM d_icd_diagnoses
    GROUP BY 1
),
procedure_titles AS (
    SELECT CASE
               WHEN icd9_code IS NOT NULL OR icd_version = 9 THEN 'ICD9PROC:'
               WHEN icd_version = 10 THEN 'ICD10PCS:'
           END || coalesce(icd9_code, icd_code) AS code,
           max(long_title) AS title
    FROM d_icd_procedures
    GROUP BY 1
),
lab_labels AS (
    SELECT itemid, max(label) AS label FROM d_labitems GROUP BY itemid
),
-- What is billed has no time: it exists at discharge. It belongs to every stay in a unit of its admission, so
-- that a row can be several events.
recorded AS (
    SELECT subject_id, hadm_id, 'diagnosis' AS kind, diagnoses.code, title AS description,
           CAST(NULL AS DOUBLE) AS numeric_value,
           arrow_cast(NULL, 'Timestamp(Microsecond, None)') AS time, false AS is_day, true AS is_billed,
           CASE WHEN diagnoses.code IS NULL AND icd_code IS NOT NULL THEN 'unknown_icd_version' END AS wrong,
           CASE $encounters WHEN 'admission' THEN 'diagnoses_icd' END AS from_table
    FROM diagnoses
    LEFT JOIN diagnosis_titles ON diagnoses.code = diagnosis_titles.code
    UNION ALL
    SELECT subject_id, hadm_id, 'treatment', procedures.code, title, NULL,
           chartdate, chartdate = date_trunc('day', chartdate), chartdate IS NULL,
           CASE WHEN procedures.code IS NULL AND icd_code IS NOT NULL THEN 'unknown_icd_version' END,
           CASE $encounters WHEN 'admission' THEN 'procedures_icd' END
    FROM procedures
    LEFT JOIN procedure_titles ON procedures.code = procedure_titles.code
    UNION ALL
    SELECT subject_id, hadm_id, 'treatment',
           CASE $drugs WHEN 'name' THEN lower(drug) ELSE 'NDC:' || ndc END,
           CASE $drugs WHEN 'ndc' THEN drug END,
           NULL,
           starttime, starttime = date_trunc('day', starttime), false,
           CASE
               WHEN $drugs = 'name' AND drug IS NULL THEN 'no_drug_name'
               WHEN $drugs = 'ndc' AND nullif(ndc, '0') IS NULL THEN 'no_ndc'
           END,
           'prescriptions'
    FROM prescriptions
    WHERE $drugs <> 'none'
    UNION ALL
    SELECT subject_id, hadm_id, 'lab', CAST(labevents.itemid AS VARCHAR), label, valuenum,
           charttime, false, false,
           NULL, 'labevents'
    FROM labevents
    LEFT JOIN lab_labels ON labevents.itemid = lab_labels.itemid
    WHERE $labs = 'all'
),
-- An event belongs to the admission that it names, or else to the encounter of its subject that goes on at its
-- time, which is the only way to find a stay in a unit.
placed AS (
    SELECT
        recorded.*,
        CASE $encounters WHEN 'admission' THEN recorded.hadm_id ELSE visits.encounter_id END AS encounter_id,
        start,
        "end" AS discharge,
        observed_until
    FROM recorded
    LEFT JOIN visits ON recorded.hadm_id = visits.hadm_id
    WHERE recorded.hadm_id IS NOT NULL AND ($encounters = 'admission' OR is_billed)
    UNION ALL
    SELECT recorded.*, spans.encounter_id, start, discharge, observed_until
    FROM recorded
    LEFT JOIN spans
        ON recorded.subject_id = spans.subject_id
        AND arrow_cast(recorded.time, 'Int64') / 2592000000000 = spans.span
        AND CASE
            WHEN is_day THEN recorded.time BETWEEN spans.first_day AND spans.last_day
            ELSE recorded.time BETWEEN spans.start AND spans."end"
        END
    WHERE recorded.hadm_id IS NULL OR NOT ($encounters = 'admission' OR is_billed)
)
SELECT
    encounter_id,
    kind,
    code,
    description,
    numeric_value,
    -- When it is known: what is billed at discharge, a day when it is over.
    CASE WHEN is_billed THEN discharge WHEN is_day THEN time + INTERVAL '1 day' ELSE time END AS time,
    from_table,
    CASE
        WHEN wrong IS NOT NULL THEN wrong
        WHEN time IS NULL AND NOT is_billed AND ($after_discharge = 'drop' OR $observe_hours IS NOT NULL) THEN 'no_time'
        WHEN encounter_id IS NULL
            THEN CASE $encounters WHEN 'admission' THEN 'outside_admissions' ELSE 'outside_stays' END
        WHEN is_billed AND $observe_hours IS NOT NULL AND $billed = 'drop' THEN 'billed_at_discharge'
        -- Of a day without a time of day it is only known that it is over when the next one begins.
        WHEN $after_discharge = 'drop' AND is_day AND time > date_trunc('day', discharge) THEN 'after_discharge'
        WHEN $after_discharge = 'drop' AND NOT is_day AND time > discharge THEN 'after_discharge'
        WHEN is_day AND time + INTERVAL '1 day' > observed_until THEN 'after_observation'
        WHEN NOT is_day AND time > observed_until THEN 'after_observation'
    END AS dropped,
    CASE
        WHEN is_billed AND $observe_hours IS NOT NULL THEN 'billed_at_discharge'
        WHEN hadm_id IS NULL AND $encounters = 'admission' THEN 'linked_by_time'
    END AS note
FROM placed
