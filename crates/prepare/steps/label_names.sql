SELECT label, CAST(count(*) AS BIGINT) AS n FROM source_labels GROUP BY label ORDER BY label
