-- The events, links and rows of context of encounters that a rule drops.
SELECT coalesce(sum(all_events), 0), coalesce(sum(all_links), 0), coalesce(sum(all_context), 0)
FROM $table
WHERE dropped IS NOT NULL
