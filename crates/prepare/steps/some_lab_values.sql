SELECT id, value FROM lab_values WHERE id >= $start AND id < $end
