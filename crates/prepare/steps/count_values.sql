SELECT coalesce(sum(with_value), 0) FROM tally WHERE kind = $kind AND dropped IS NULL
