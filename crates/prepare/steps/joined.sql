-- Encounters with the lists of their codes and links.
SELECT
    encounters.*,
    listed.context,
    listed.diagnosis,
    listed.treatment,
    listed.lab,
    coalesce(listed.events, 0) AS all_events,
    coalesce(listed.context_rows, 0) AS all_context,
    $links AS links,
    $count_links AS all_links
FROM encounters
LEFT JOIN (SELECT * FROM lists $where_share) AS listed ON encounters.encounter_id = listed.encounter_id
$join_links
WHERE encounters.dropped IS NULL $and_share
