SELECT kind, CAST(code AS VARCHAR), CAST(description AS VARCHAR), id FROM codes ORDER BY kind, id
