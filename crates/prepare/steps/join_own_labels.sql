LEFT JOIN own_labels ON CAST(given.encounter_id AS VARCHAR) = own_labels.own_id
