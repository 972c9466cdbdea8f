//! The conditional probabilities of the training split, counted by the engine.

use std::path::PathBuf;

use datafusion::prelude::ParquetReadOptions;
use gct::dataset::Assembly;

use super::Steps;
use crate::error::Result;

impl Steps<'_> {
    /// Writes the conditional probabilities of the training split, as `gct prior --out` does, and says where.
    pub(super) async fn prior(&self, assembly: &Assembly) -> Result<PathBuf> {
        let options = ParquetReadOptions::default();
        self.engine
            .context
            .register_parquet("written", assembly.encounters().display().to_string(), options)
            .await?;
        let has_part = self
            .engine
            .context
            .table("written")
            .await?
            .schema()
            .fields()
            .iter()
            .any(|field| field.name() == "part");
        let part = if has_part { "" } else { ", CAST(NULL AS VARCHAR) AS part" };
        let training =
            format!("SELECT * FROM (SELECT *{part} FROM written) e WHERE {}", self.is_training("e"));
        let training = self.engine.sql(&training).await?;
        self.engine.view("training", training)?;
        // All of them at once, so that encounters are read once.
        let counted = "SELECT pair_count(diagnosis, treatment) AS diagnosis_treatment, pair_count(treatment, lab) AS treatment_lab, \
             code_count(diagnosis) AS diagnosis, code_count(treatment) AS treatment, code_count(lab) AS lab FROM training";
        let counted = self.engine.sql(counted).await?;
        self.engine.keep("counting pairs", "counted", counted).await?;
        let mut conditionals = vec![];
        for (cause, effect) in [("diagnosis", "treatment"), ("treatment", "lab")] {
            let entries = |column: &str| format!("(SELECT unnest({column}) AS entry FROM counted)");
            let (pairs, causes, effects) =
                (entries(&format!("{cause}_{effect}")), entries(cause), entries(effect));
            let share = |given: &str, code: &str, kinds: [&str; 2], counts: &str| {
                format!(
                    "SELECT '{}' AS given_kind, p.entry['{given}'] AS given_id, '{}' AS kind, p.entry['{code}'] AS id, \
                            arrow_cast(p.entry['count'], 'UInt32') AS count, \
                            CAST(p.entry['count'] AS DOUBLE) / CAST(g.entry['count'] AS DOUBLE) AS probability \
                     FROM {pairs} p JOIN {counts} g ON p.entry['{given}'] = g.entry['id']",
                    kinds[0], kinds[1]
                )
            };
            conditionals.push(share("cause", "effect", [cause, effect], &causes));
            conditionals.push(share("effect", "cause", [effect, cause], &effects));
        }
        let all = format!(
            "SELECT * FROM ({}) ORDER BY given_kind, given_id, kind, id",
            conditionals.join(" UNION ALL ")
        );
        let all = self.engine.sql(&all).await?;
        let place = self.engine.place("prior.parquet");
        self.engine.write("writing the prior", all, &place.display().to_string()).await?;
        Ok(place)
    }
}
