SELECT id, value FROM bucket_values WHERE id >= $start AND id < $end
