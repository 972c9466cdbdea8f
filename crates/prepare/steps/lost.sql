-- Events or links of no encounter, or of none that the source keeps.
SELECT CAST(coalesce(sum(counted.$count), 0) AS BIGINT)
FROM $table AS counted
LEFT ANTI JOIN (SELECT encounter_id FROM encounters $where) AS known ON counted.encounter_id = known.encounter_id
