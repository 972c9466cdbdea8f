-- Probabilities of codes of one kind given codes of another: `$given` and `$code` are the ends of a pair, cause or
-- effect.
SELECT $given_kind AS given_kind, p.entry[$given] AS given_id, given_code.code AS given_code,
       $kind AS kind, p.entry[$code] AS id, code.code AS code,
       arrow_cast(p.entry['count'], 'UInt32') AS count,
       arrow_cast(given_count.entry['count'], 'UInt32') AS given_count,
       CAST(p.entry['count'] AS DOUBLE) / CAST(given_count.entry['count'] AS DOUBLE) AS probability
FROM (SELECT unnest($pairs) AS entry FROM counted) AS p
JOIN (SELECT unnest($given_counts) AS entry FROM counted) AS given_count
    ON p.entry[$given] = given_count.entry['id']
JOIN vocabulary AS given_code ON given_code.kind = $given_kind AND given_code.id = p.entry[$given]
JOIN vocabulary AS code ON code.kind = $kind AND code.id = p.entry[$code]
