-- A column per label, a row per encounter.
SELECT CAST(encounter_id AS VARCHAR) AS own_id $labels FROM source_labels GROUP BY CAST(encounter_id AS VARCHAR)
