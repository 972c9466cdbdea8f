WITH recorded AS (
    SELECT person_id, visit_occurrence_id, 'diagnosis' AS kind,
           coalesce(condition_start_datetime, condition_start_date) AS time,
           date_trunc('day', coalesce(condition_start_date, condition_start_day)) AS day,
           condition_concept_id AS concept_id,
           condition_source_concept_id AS source_concept_id,
           condition_source_value AS source_value,
           CAST(NULL AS DOUBLE) AS value_as_number,
           CAST(NULL AS BIGINT) AS value_as_concept_id,
           'condition_occurrence' AS from_table
    FROM condition_occurrence
    UNION ALL
    SELECT person_id, visit_occurrence_id, 'treatment', coalesce(procedure_datetime, procedure_date),
           date_trunc('day', coalesce(procedure_date, procedure_day)),
           procedure_concept_id, procedure_source_concept_id, procedure_source_value, NULL, NULL, 'procedure_occurrence'
    FROM procedure_occurrence
    UNION ALL
    SELECT person_id, visit_occurrence_id, 'treatment',
           coalesce(drug_exposure_start_datetime, drug_exposure_start_date),
           date_trunc('day', coalesce(drug_exposure_start_date, drug_exposure_start_day)),
           drug_concept_id, drug_source_concept_id, drug_source_value, NULL, NULL, 'drug_exposure'
    FROM drug_exposure
    UNION ALL
    SELECT person_id, visit_occurrence_id, 'lab', coalesce(measurement_datetime, measurement_date),
           date_trunc('day', coalesce(measurement_date, measurement_day)),
           measurement_concept_id, measurement_source_concept_id, measurement_source_value,
           value_as_number, value_as_concept_id, 'measurement'
    FROM measurement
    WHERE $measurements = 'all'
),
-- Of several visits that contain a day, the one that began last, then the one that ended first.
days AS (
    SELECT person_id, day, visit_occurrence_id
    FROM (
        SELECT looked.person_id, looked.day, visits.visit_occurrence_id,
               row_number() OVER (
                   PARTITION BY looked.person_id, looked.day
                   ORDER BY first_day DESC, last_day, visits.visit_occurrence_id
               ) AS place
        FROM (
            SELECT DISTINCT person_id, day FROM recorded
            WHERE $link_by_date AND visit_occurrence_id IS NULL
        ) looked
        JOIN visits ON looked.person_id = visits.person_id AND looked.day >= first_day AND looked.day <= last_day
        WHERE is_taken
    )
    WHERE place = 1
),
-- A concept of 0 says that there is none.
chosen AS (
    SELECT
        coalesce(recorded.visit_occurrence_id, days.visit_occurrence_id) AS visit_occurrence_id,
        recorded.person_id,
        recorded.visit_occurrence_id IS NULL AND days.visit_occurrence_id IS NOT NULL AS is_linked_by_date,
        kind,
        time,
        recorded.day,
        from_table,
        nullif(CASE $concepts WHEN 'standard' THEN concept_id ELSE source_concept_id END, 0) AS concept_id,
        nullif(concept_id, 0) AS standard_id,
        source_value,
        value_as_number,
        CASE WHEN value_as_number IS NULL THEN nullif(value_as_concept_id, 0) END AS value_id
    FROM recorded
    LEFT JOIN days ON recorded.visit_occurrence_id IS NULL AND recorded.person_id = days.person_id
        AND recorded.day = days.day
),
concepts AS (
    SELECT
        concept_id,
        concept_name,
        coalesce(vocabulary_id || ':' || concept_code, CAST(concept_id AS VARCHAR)) AS code
    FROM concept
),
coded AS (
    SELECT
        chosen.*,
        CASE
            -- A word of the source says more than the number of a concept that nothing is known of.
            WHEN chosen.concept_id IS NOT NULL
                THEN coalesce(
                    own.code,
                    CASE $concepts WHEN 'source' THEN source_value END,
                    CAST(chosen.concept_id AS VARCHAR)
                )
            WHEN $unmapped = 'source_value' THEN source_value
        END AS code,
        coalesce(own.concept_name, source_value) AS name,
        coalesce(worth.code, CAST(value_id AS VARCHAR)) AS value,
        coalesce(worth.concept_name, worth.code, CAST(value_id AS VARCHAR)) AS value_name
    FROM chosen
    LEFT JOIN concepts own ON chosen.concept_id = own.concept_id
    LEFT JOIN concepts worth ON chosen.value_id = worth.concept_id
)
SELECT
    coded.visit_occurrence_id AS encounter_id,
    -- Whose event it is, also where it belongs to no visit.
    coded.person_id AS subject_id,
    kind,
    -- A number goes into a bucket; a concept is part of the code.
    CASE WHEN value IS NULL THEN code ELSE code || '=' || value END AS code,
    CASE WHEN value IS NULL THEN name ELSE concat(coalesce(name, code), ': ', value_name) END AS description,
    value_as_number AS numeric_value,
    -- Of a day without a time of day it is only known that it is over when the next one begins.
    CASE WHEN time = date_trunc('day', time) THEN time + INTERVAL '1 day' ELSE time END AS time,
    -- What ancestors are looked up by; a lab with a result has none.
    CASE WHEN value IS NULL THEN standard_id END AS standard_id,
    from_table,
    CASE
        WHEN code IS NULL THEN 'unmapped'
        -- An end without a time of day is the end of that day; a visit without an end is over with the day on
        -- which it begins.
        WHEN $after_discharge = 'drop' AND "end" IS NULL AND coded.day > last_day THEN 'after_first_day'
        WHEN $after_discharge = 'drop' AND coalesce("end" = date_trunc('day', "end"), false) AND coded.day > last_day
            THEN 'after_discharge'
        WHEN $after_discharge = 'drop' AND "end" <> date_trunc('day', "end") AND time > "end" THEN 'after_discharge'
    END AS dropped,
    nullif(concat_ws(
        ',',
        CASE WHEN is_linked_by_date THEN 'linked_by_date' END,
        CASE WHEN $concepts = 'standard' AND concept_id IS NULL THEN 'source_value_taken' END
    ), '') AS note
FROM coded
LEFT JOIN visits ON coded.visit_occurrence_id = visits.visit_occurrence_id
