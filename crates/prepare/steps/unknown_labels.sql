-- Why labels of kept encounters are not known.
SELECT label || ',' || note AS reason, CAST(count(*) AS BIGINT) AS n
FROM source_labels
JOIN (SELECT encounter_id FROM accepted WHERE dropped IS NULL) AS kept
    ON source_labels.encounter_id = kept.encounter_id
WHERE value IS NULL AND note IS NOT NULL
GROUP BY 1
ORDER BY 1
