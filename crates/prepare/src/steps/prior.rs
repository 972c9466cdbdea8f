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
        let training = format!("SELECT * FROM (SELECT *{part} FROM written) e WHERE {}", self.is_training());
        let training = self.engine.sql(&training).await?;
        self.engine.view("training", training)?;
        let mut conditionals = vec![];
        for (place, (cause, effect)) in
            [("diagnosis", "treatment"), ("treatment", "lab")].into_iter().enumerate()
        {
            let (pairs, causes, effects) =
                (format!("pairs_{place}"), format!("causes_{place}"), format!("effects_{place}"));
            for (name, count) in [
                (&pairs, format!("pair_count({cause}, {effect})")),
                (&causes, format!("code_count({cause})")),
                (&effects, format!("code_count({effect})")),
            ] {
                let counted =
                    self.engine.sql(&format!("SELECT unnest({count}) AS entry FROM training")).await?;
                self.engine.keep("counting pairs", name, counted).await?;
            }
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
