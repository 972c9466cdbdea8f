-- Edges, events, links, context, wrong ends and labels of kept encounters.
SELECT
    CAST(coalesce(sum(cardinality(links)), 0) AS BIGINT) AS edges,
    CAST(count(*) FILTER (WHERE cardinality(links) > 0) AS BIGINT) AS with_edges,
    CAST(coalesce(sum(all_events), 0) AS BIGINT) AS events_read,
    CAST(coalesce(sum(known_events), 0) AS BIGINT) AS events_kept,
    CAST(coalesce(sum(all_links), 0) AS BIGINT) AS links_read,
    CAST(coalesce(sum(known_links), 0) AS BIGINT) AS links_kept,
    CAST(coalesce(sum(all_context), 0) AS BIGINT) AS context_read,
    CAST(coalesce(sum(known_context), 0) AS BIGINT) AS context_kept,
    CAST(count(*) FILTER (WHERE "end" < start) AS BIGINT) AS ends_left_out
    $labels
FROM accepted
WHERE dropped IS NULL
