-- Kept encounters. Where one link is known, all are: no lab has a cause then.
SELECT
    * EXCEPT(links, all_events, known_events, all_context, known_context, all_links, known_links, from_table),
    CASE WHEN cardinality(links) > 0 THEN links END AS links,
    CASE WHEN cardinality(links) > 0
        THEN arrow_cast(make_array(), 'List(Struct("treatment": UInt32, "lab": UInt32))')
    END AS treatment_lab
FROM accepted
WHERE dropped IS NULL
