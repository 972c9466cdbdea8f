-- The codes of each encounter, as numbers.
SELECT
    events.encounter_id,
    array_agg($context) FILTER (WHERE events.kind = 'context') AS context,
    array_agg(codes.id) FILTER (WHERE events.kind = 'diagnosis') AS diagnosis,
    array_agg(codes.id) FILTER (WHERE events.kind = 'treatment') AS treatment,
    array_agg($lab) FILTER (WHERE events.kind = 'lab') AS lab,
    count(*) FILTER (WHERE events.kind <> 'context') AS events,
    count(*) FILTER (WHERE events.kind = 'context') AS context_rows
FROM events
JOIN codes ON events.kind = codes.kind AND events.code = codes.code
WHERE events.dropped IS NULL $and_share
GROUP BY events.encounter_id
