UNION ALL
SELECT encounter_id, 'context', code, NULL, NULL, NULL, dropped, numeric_value $no_time FROM context
