-- Every diagnosis that was recorded, also where a rule drops its event, unless the rule says that it was not made.
SELECT
    CAST(code AS VARCHAR) AS code,
    CAST(encounter_id AS VARCHAR) AS encounter_id,
    CAST(subject_id AS VARCHAR) AS subject_id,
    time
FROM (SELECT encounter_id, kind, code, $columns FROM source_events)
WHERE kind = 'diagnosis' AND code IS NOT NULL
    AND coalesce(dropped, '') NOT IN ('superseded', 'entered_in_error', 'refuted', 'not_done')
