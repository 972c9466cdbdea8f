SELECT $column, CAST($count AS BIGINT) AS n FROM $table GROUP BY $column ORDER BY $column
