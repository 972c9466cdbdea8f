SELECT coalesce(sum(with_value), 0) FROM tally WHERE kind = 'lab' AND dropped IS NULL
