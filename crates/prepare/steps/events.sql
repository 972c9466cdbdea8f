-- The source's events, and context; `dropped` names the rule that drops one. A value that is no number, or beyond all
-- numbers, goes into no bucket.
SELECT
    encounter_id,
    kind,
    code,
    description,
    from_table,
    CASE WHEN value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308 THEN value END AS numeric_value,
    nullif(
        concat_ws(
            ',',
            note,
            CASE
                WHEN kind IN ('lab', 'context') AND NOT value BETWEEN -1.7976931348623157e308 AND 1.7976931348623157e308
                    THEN 'no_finite_value'
            END
        ),
        ''
    ) AS note,
    CASE
        WHEN dropped IS NOT NULL THEN dropped
        WHEN kind IS NULL OR kind NOT IN ('context', 'diagnosis', 'treatment', 'lab') THEN 'unknown_kind'
        WHEN code IS NULL OR code = '' THEN 'no_code'
        WHEN octet_length(code) > 1000 THEN 'code_too_long'
        WHEN kind = 'context' AND NOT ($is_chosen) THEN 'not_chosen'
        $after_prediction
    END AS dropped
FROM (
    SELECT
        CAST(encounter_id AS VARCHAR) AS encounter_id,
        kind,
        code,
        description,
        from_table,
        note,
        dropped,
        CAST(numeric_value AS DOUBLE) AS value
        $time
    FROM (SELECT encounter_id, kind, code, $columns FROM source_events)
    $and_context
) AS given
$join_times
$where
