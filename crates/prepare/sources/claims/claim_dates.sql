-- A row per claim, or per segment or line of one, with its dates and its type.
SELECT claim_id, subject_id, from_date, thru_date, lower(claim_type) AS type, lower(admission_type) AS admission_type
FROM claims WHERE $layout = 'long'
UNION ALL
SELECT claim_id, subject_id, from_date, thru_date, 'inpatient', lower(admission_type)
FROM inpatient WHERE $layout = 'wide'
UNION ALL
SELECT claim_id, subject_id, from_date, thru_date, 'outpatient', NULL FROM outpatient WHERE $layout = 'wide'
