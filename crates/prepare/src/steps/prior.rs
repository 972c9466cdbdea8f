//! The conditional probabilities of the training split, counted by the engine.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use datafusion::error::DataFusionError;
use datafusion::prelude::ParquetReadOptions;
use gct::dataset::Assembly;
use gct::record::{Code, CodeKind, Vocabulary};

use super::Steps;
use crate::error::Result;
use crate::sql::{filled, quoted};

impl Steps<'_> {
    /// Writes the conditional probabilities of the training split, as `gct prior --out` does, and says where.
    pub(super) async fn prior(&self, assembly: &Assembly, vocabulary: &Vocabulary) -> Result<PathBuf> {
        let options = ParquetReadOptions::default();
        self.engine
            .context
            .register_parquet("written", format!("{}/", assembly.encounters().display()), options)
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
        let counted = self.engine.sql(include_str!("../../steps/prior_counts.sql")).await?;
        self.engine.keep("counting pairs", "counted", counted).await?;
        self.engine.context.register_batch("vocabulary", names(vocabulary)?)?;
        let mut conditionals = vec![];
        for (cause, effect) in [("diagnosis", "treatment"), ("treatment", "lab")] {
            let pairs = format!("{cause}_{effect}");
            for (given, code, given_kind, kind, counts) in [
                ("cause", "effect", cause, effect, ["given_count", "code_count"]),
                ("effect", "cause", effect, cause, ["code_count", "given_count"]),
            ] {
                let [of_cause, of_effect] = counts;
                let code_kind = kind;
                let [given, code, given_text, text] = [given, code, given_kind, kind].map(quoted);
                let parts = [
                    ("given_kind", given_text.as_str()),
                    ("given_counts", given_kind),
                    ("code_counts", code_kind),
                    ("cause", of_cause),
                    ("outcome", of_effect),
                    ("given", &given),
                    ("kind", &text),
                    ("code", &code),
                    ("pairs", &pairs),
                ];
                conditionals.push(filled(include_str!("../../steps/conditionals.sql"), &parts));
            }
        }
        let all = format!(
            "SELECT * FROM ({}) ORDER BY given_kind, given_id, kind, id",
            conditionals.join(" UNION ALL ")
        );
        let all = self.engine.sql(&all).await?;
        let path = self.engine.temporary_path("prior.parquet");
        self.engine.write("writing the prior", all, &path.display().to_string()).await?;
        Ok(path)
    }
}

/// The codes of a vocabulary with their kinds and ids, as a table of the engine.
fn names(vocabulary: &Vocabulary) -> Result<RecordBatch> {
    let of_kind = |kind: CodeKind| (0u32..).zip(&vocabulary[kind]).map(move |(id, code)| (kind, id, code));
    let all: Vec<(CodeKind, u32, &Code)> = CodeKind::ALL.into_iter().flat_map(of_kind).collect();
    let kinds = StringArray::from_iter_values(all.iter().map(|(kind, ..)| kind.name()));
    let ids = UInt32Array::from_iter_values(all.iter().map(|(_, id, _)| *id));
    let codes = StringArray::from_iter_values(all.iter().map(|(.., code)| &code.code));
    let columns: [(_, ArrayRef); 3] =
        [("kind", Arc::new(kinds)), ("id", Arc::new(ids)), ("code", Arc::new(codes))];
    Ok(RecordBatch::try_from_iter(columns).map_err(DataFusionError::from)?)
}
