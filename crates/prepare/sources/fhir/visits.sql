-- Every version of every encounter, and what is wrong with it. Of several, the latest counts.
SELECT
    *,
    CASE
        WHEN min(patient) OVER (PARTITION BY id) <> max(patient) OVER (PARTITION BY id) THEN 'two_subjects'
        WHEN row_number() OVER (PARTITION BY id ORDER BY updated DESC NULLS LAST, resource DESC) > 1 THEN 'superseded'
        WHEN status = 'entered-in-error' THEN 'entered_in_error'
        WHEN status IN ('planned', 'cancelled') THEN 'not_done'
    END AS wrong
FROM encounter
