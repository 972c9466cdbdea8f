-- Probabilities of codes of one kind given codes of another: `$given` and `$code` are the ends of a pair, cause or
-- effect; `$cause` and `$outcome` are the counts of these. The association is the signed root of chi-squared.
SELECT given_kind, given_id, given_code, kind, id, code, count, given_count,
       both / CAST(given_count AS DOUBLE) AS probability, encounters,
       CASE WHEN cause * outcome * (everyone - cause) * (everyone - outcome) > 0
            THEN sqrt(everyone) * (everyone * both - cause * outcome)
                 / sqrt(cause * outcome * (everyone - cause) * (everyone - outcome))
            ELSE CAST(0 AS DOUBLE) END AS association
FROM (
    SELECT $given_kind AS given_kind, p.entry[$given] AS given_id, given_code.code AS given_code,
           $kind AS kind, p.entry[$code] AS id, code.code AS code,
           arrow_cast(p.entry['count'], 'UInt32') AS count,
           arrow_cast(given_count.entry['count'], 'UInt32') AS given_count,
           arrow_cast(everyone.encounters, 'UInt32') AS encounters,
           CAST(p.entry['count'] AS DOUBLE) AS both,
           CAST($cause.entry['count'] AS DOUBLE) AS cause,
           CAST($outcome.entry['count'] AS DOUBLE) AS outcome,
           CAST(everyone.encounters AS DOUBLE) AS everyone
    FROM (SELECT unnest($pairs) AS entry FROM counted) AS p
    CROSS JOIN (SELECT encounters FROM counted) AS everyone
    JOIN (SELECT unnest($given_counts) AS entry FROM counted) AS given_count
        ON p.entry[$given] = given_count.entry['id']
    JOIN (SELECT unnest($code_counts) AS entry FROM counted) AS code_count
        ON p.entry[$code] = code_count.entry['id']
    JOIN vocabulary AS given_code ON given_code.kind = $given_kind AND given_code.id = p.entry[$given]
    JOIN vocabulary AS code ON code.kind = $kind AND code.id = p.entry[$code]
) AS c
