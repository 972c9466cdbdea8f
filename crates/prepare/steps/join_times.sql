LEFT JOIN (SELECT given_id, label_time FROM given_labels) AS times ON given.encounter_id = times.given_id
