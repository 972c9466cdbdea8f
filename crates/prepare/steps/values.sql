-- The values of codes of a kind in training encounters.
SELECT listed['id'] AS id, listed['value'] AS value
FROM (SELECT unnest(alive.$kind) AS listed FROM alive WHERE $is_training)
WHERE listed['value'] IS NOT NULL
