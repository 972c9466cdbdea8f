-- The values of labs in training encounters.
SELECT lab['id'] AS id, lab['value'] AS value
FROM (SELECT unnest(alive.lab) AS lab FROM alive WHERE $is_training)
WHERE lab['value'] IS NOT NULL
