-- A column without any value is not written.
SELECT count(part), count(prediction_time) FROM accepted
