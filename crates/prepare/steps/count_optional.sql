-- A column without any value is not written.
SELECT count("end"), count(part), count(prediction_time) FROM accepted
