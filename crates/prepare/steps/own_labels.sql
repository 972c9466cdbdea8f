-- A column per label, a row per encounter, and the rule of a label that drops it.
SELECT encounter_id AS own_id, min(dropped) AS label_rule $labels FROM source_labels GROUP BY encounter_id
