-- Every code, with its description, and the kind of the longest prefix with which it begins. A code that is all of a
-- prefix but the slash at its end has it too. A treatment is withheld if the last part of its code says so.
WITH matching AS (
    SELECT
        known.code,
        kinds.kind,
        row_number() OVER (PARTITION BY known.code ORDER BY length(kinds.prefix) DESC) AS place
    FROM (SELECT DISTINCT code FROM data) AS known
    JOIN kinds ON starts_with(lower(concat(known.code, '/')), lower(kinds.prefix))
)
SELECT matching.code, kind, description, withheld.status IS NOT NULL AS is_withheld
FROM matching
LEFT JOIN (SELECT DISTINCT lower(trim(status)) AS status FROM not_given) AS withheld
    ON kind = 'treatment' AND lower(trim(regexp_replace(matching.code, '^.*/', ''))) = withheld.status
LEFT JOIN (SELECT code, max(description) AS description FROM codes GROUP BY code) AS described
    ON matching.code = described.code
WHERE place = 1
