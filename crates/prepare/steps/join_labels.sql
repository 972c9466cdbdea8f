LEFT JOIN given_labels ON CAST(given.encounter_id AS VARCHAR) = given_labels.given_id
