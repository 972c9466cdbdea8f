-- The tally with the group of each code. A code of a kind without a rollup is a group of its own.
SELECT
    tally.kind,
    tally.code,
    coalesce(rollup.group_code, tally.code) AS group_code,
    coalesce(tally.dropped, rollup.dropped) AS dropped,
    tally.from_table,
    CASE WHEN rollup.dropped IS NULL THEN tally.note END AS note,
    CASE WHEN rollup.code IS NULL THEN tally.description ELSE rollup.description END AS description,
    tally.events
FROM tally
LEFT JOIN rollup ON tally.kind = rollup.kind AND tally.code = rollup.code
