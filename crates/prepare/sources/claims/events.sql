WITH each AS (
    SELECT claim_id, min(subject_id) AS subject_id, min(date_trunc('day', from_date)) AS first_day,
           max(date_trunc('day', coalesce(thru_date, from_date))) AS last_day
    FROM claim_dates
    WHERE $types IS NULL OR coalesce(array_has(string_to_array(replace(lower($types), ' ', ''), ','), type), false)
    GROUP BY claim_id
),
-- Of several claims that contain a day, the one that began last, then the one that ended first.
days AS (
    SELECT subject_id, day, claim_id
    FROM (
        SELECT looked.subject_id, looked.day, claim_id,
               row_number() OVER (
                   PARTITION BY looked.subject_id, looked.day ORDER BY first_day DESC, last_day, claim_id
               ) AS place
        FROM (
            SELECT DISTINCT subject_id, date_trunc('day', date) AS day FROM prescription
            WHERE $prescriptions = 'link_by_date'
        ) looked
        JOIN each ON looked.subject_id = each.subject_id AND looked.day >= first_day AND looked.day <= last_day
    )
    WHERE place = 1
),
wide AS (
    SELECT claim_id, admitting, diagnoses, procedures, services, coalesce(thru_date, from_date) AS day
    FROM inpatient WHERE $layout = 'wide'
    UNION ALL
    SELECT claim_id, admitting, diagnoses, procedures, services, coalesce(thru_date, from_date)
    FROM outpatient WHERE $layout = 'wide'
),
wide_codes AS (
    SELECT claim_id, day, 'ICD9DX' AS code_type, admitting AS code FROM wide
    UNION ALL
    SELECT claim_id, day, 'ICD9DX', unnest(diagnoses) FROM wide
    UNION ALL
    SELECT claim_id, day, 'ICD9PROC', unnest(procedures) FROM wide
    UNION ALL
    SELECT claim_id, day, 'HCPCS', unnest(services) FROM wide
),
-- Columns without a code are no events; a claim line without one is, and is counted.
recorded AS (
    SELECT claim_id, code_type, code, day, CAST(NULL AS VARCHAR) AS description,
           CAST(NULL AS DOUBLE) AS numeric_value, CAST(NULL AS VARCHAR) AS note,
           CAST(NULL AS VARCHAR) AS from_table
    FROM wide_codes WHERE code IS NOT NULL
    UNION ALL
    SELECT claim_id, code_type, code, coalesce(thru_date, from_date), description, numeric_value, NULL, 'claims'
    FROM claims WHERE $layout = 'long'
    UNION ALL
    SELECT days.claim_id, 'NDC', code, date, NULL, NULL,
           CASE WHEN days.claim_id IS NOT NULL THEN 'linked_by_date' END, 'prescription'
    FROM prescription
    LEFT JOIN days ON prescription.subject_id = days.subject_id AND date_trunc('day', prescription.date) = days.day
    WHERE $prescriptions = 'link_by_date'
)
SELECT
    claim_id AS encounter_id,
    known_kinds.kind,
    coalesce(known_kinds.system || ':' || code, code) AS code,
    description,
    -- A row of a claim is written when its last day is over.
    date_trunc('day', recorded.day) + INTERVAL '1 day' AS time,
    numeric_value,
    note,
    from_table
FROM recorded
LEFT JOIN known_kinds ON regexp_replace(upper(code_type), '[^A-Z0-9]', '', 'g') = known_kinds.name
