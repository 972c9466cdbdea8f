-- What types of codes are, each once: ICD-10-CM and icd10cm are the same.
SELECT regexp_replace(upper(name), '[^A-Z0-9]', '', 'g') AS name, min(system) AS system, min(kind) AS kind
FROM kinds
GROUP BY 1
