LEFT JOIN (
    SELECT
        CAST(encounter_id AS VARCHAR) AS observed_id,
        arrow_cast(date_trunc('day', until), 'Int64') / 86400000000 AS until
    FROM observed
) AS observed ON stays.encounter_id = observed_id
