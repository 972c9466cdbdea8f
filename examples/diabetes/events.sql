-- Codes are in columns; a column without one is no event.
WITH diagnoses AS (
    SELECT encounter_id, unnest(make_array(nullif(diag_1, '?'), nullif(diag_2, '?'), nullif(diag_3, '?'))) AS code
    FROM diabetic_data
),
-- A drug is steady, or its dose goes up or down, which is part of the code: `insulin=up`.
drugs AS (
    SELECT encounter_id, unnest(make_array(
        'metformin=' || lower(metformin),
        'repaglinide=' || lower(repaglinide),
        'nateglinide=' || lower(nateglinide),
        'chlorpropamide=' || lower(chlorpropamide),
        'glimepiride=' || lower(glimepiride),
        'acetohexamide=' || lower(acetohexamide),
        'glipizide=' || lower(glipizide),
        'glyburide=' || lower(glyburide),
        'tolbutamide=' || lower(tolbutamide),
        'pioglitazone=' || lower(pioglitazone),
        'rosiglitazone=' || lower(rosiglitazone),
        'acarbose=' || lower(acarbose),
        'miglitol=' || lower(miglitol),
        'troglitazone=' || lower(troglitazone),
        'tolazamide=' || lower(tolazamide),
        'examide=' || lower(examide),
        'citoglipton=' || lower(citoglipton),
        'insulin=' || lower(insulin),
        'glyburide-metformin=' || lower("glyburide-metformin"),
        'glipizide-metformin=' || lower("glipizide-metformin"),
        'glimepiride-pioglitazone=' || lower("glimepiride-pioglitazone"),
        'metformin-rosiglitazone=' || lower("metformin-rosiglitazone"),
        'metformin-pioglitazone=' || lower("metformin-pioglitazone")
    )) AS code
    FROM diabetic_data
),
-- Values are words: `A1C=>8`. None means that it was not measured.
labs AS (
    SELECT encounter_id, unnest(make_array(
        'glucose=' || lower(nullif(nullif(max_glu_serum, 'None'), '?')),
        'A1C=' || lower(nullif(nullif(a1cresult, 'None'), '?'))
    )) AS code
    FROM diabetic_data
)
SELECT encounter_id, 'diagnosis' AS kind, 'ICD9CM:' || code AS code FROM diagnoses WHERE code IS NOT NULL
UNION ALL
SELECT encounter_id, 'treatment', code FROM drugs WHERE split_part(code, '=', 2) NOT IN ('no', '?')
UNION ALL
SELECT encounter_id, 'lab', code FROM labs WHERE code IS NOT NULL
