-- In how many training encounters codes and pairs of codes occur. All of them at once, so that encounters are read
-- once.
SELECT pair_count(diagnosis, treatment) AS diagnosis_treatment,
       pair_count(treatment, lab) AS treatment_lab,
       code_count(diagnosis) AS diagnosis,
       code_count(treatment) AS treatment,
       code_count(lab) AS lab,
       count(*) AS encounters
FROM training
