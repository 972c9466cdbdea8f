-- Where a diagnosis of a label was recorded. One without an encounter was made before it is known.
SELECT
    label,
    encounter_id,
    subject_id,
    min(arrow_cast(time, 'Timestamp(Microsecond, None)') - INTERVAL '1 microsecond') AS made
FROM diagnoses
JOIN onset_codes ON diagnoses.code = onset_codes.code
GROUP BY label, encounter_id, subject_id
