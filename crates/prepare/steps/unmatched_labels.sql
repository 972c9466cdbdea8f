-- Labels of no encounter.
SELECT count(*)
FROM given_labels
LEFT ANTI JOIN $encounters AS known ON given_labels.given_id = CAST(known.encounter_id AS VARCHAR)
