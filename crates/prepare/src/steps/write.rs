//! The dataset folder: what is counted about it, and how it is written.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, cast, col};
use gct::dataset::{Assembly, Source};
use gct::job::Job;
use gct::record::{CodeKind, PerKind, Vocabulary};
use serde_json::json;

use super::{Numbering, Steps, add};
use crate::engine::{Progress, numbers};
use crate::error::Result;
use crate::functions::{known_ids, true_edges};
use crate::settings::Rare;
use crate::sql::{filled, named};
use crate::summary::Summary;

impl Steps<'_> {
    /// Subjects, labels and edges of what is kept. A label that is known nowhere is none.
    pub(super) async fn count(&mut self, summary: &mut Summary) -> Result<()> {
        let subjects = include_str!("../../steps/count_subjects.sql");
        let subjects = numbers(&self.engine.query("counting subjects", subjects).await?);
        (summary.subjects, summary.subjects_with_several_encounters) = (subjects[0], subjects[1]);
        let labels = self.labels.iter().enumerate().map(|(index, label)| {
            let label = named(label);
            let positive = format!("count(*) FILTER (WHERE {label}) AS positive_{index}");
            format!(", {positive}, count({label}) AS known_{index}")
        });
        let labels: String = labels.collect();
        let counts = filled(include_str!("../../steps/count_kept.sql"), &[("labels", &labels)]);
        let counts = numbers(&self.engine.query("counting labels", &counts).await?);
        let [edges, with_edges, events_read, events_kept, links_read, links_kept, labels @ ..] = &counts[..]
        else {
            unreachable!("the query has six counts, and two per label")
        };
        (summary.edges, summary.encounters_with_edges) = (*edges, *with_edges);
        (summary.events_kept, summary.links_kept) = (*events_kept, *links_kept);
        let rule = if self.request.like.is_some() { "unseen_code" } else { "rare_code" };
        add(&mut summary.events_dropped, rule, events_read - events_kept);
        add(&mut summary.links_dropped, "end_left_out", links_read - links_kept);
        let labels = self.labels.iter().zip(labels.chunks(2));
        let labels = labels.map(|(label, counts)| (label.clone(), counts[0], counts[1]));
        summary.labels = labels.filter(|(_, _, known)| *known > 0).collect();
        self.labels = summary.labels.iter().map(|label| label.0.clone()).collect();
        Ok(())
    }

    /// Writes the dataset and, if they are wanted, the conditional probabilities of its training split.
    pub(super) async fn finish(
        &self,
        assembly: Assembly,
        numberings: &PerKind<Numbering>,
        bounds: serde_json::Map<String, serde_json::Value>,
        summary: &Summary,
        job: &Job<'_, Progress>,
    ) -> Result<()> {
        self.write_encounters(&assembly, numberings).await?;
        let vocabulary = vocabulary(numberings);
        let prior = match &self.request.prior {
            Some(out) => Some((self.prior(&assembly, &vocabulary).await?, out)),
            None => None,
        };
        let mut source = Source {
            kind: self.request.source.name.clone(),
            settings: self.settings(),
            findings: json!({
                "counts": summary.json(self.request.settings.min_cell),
                "lab_bounds": bounds,
                "rollups": self.mappings(),
            }),
        };
        if let Some(like) = &self.request.like {
            source.settings["like"] = json!(like.path);
            source.findings["like"] = json!({ "source": like.source });
        }
        let total = summary.encounters_kept;
        let checking = job.inner(|rows| {
            Some(Progress { step: "checking every encounter".into(), rows, total: Some(total) })
        });
        assembly.finish(source, vocabulary, self.labels.clone(), total, &checking)?;
        if let Some((written, out)) = prior {
            gct::files::copy_file(&written, out, self.request.overwrite)?;
        }
        Ok(())
    }

    async fn write_encounters(&self, assembly: &Assembly, numberings: &PerKind<Numbering>) -> Result<()> {
        let known = |kind: CodeKind| known_ids(col(kind.name()), &numberings[kind].new);
        let mut columns = vec![
            cast(col("encounter_id"), DataType::Utf8).alias("encounter_id"),
            col("subject_id"),
            col("start"),
        ];
        columns.extend(CodeKind::OF_PAPER.map(|kind| known(kind).alias(kind.name())));
        let edges = true_edges(
            [col("links"), known(CodeKind::Diagnosis), known(CodeKind::Treatment)],
            [&numberings.diagnosis.new, &numberings.treatment.new],
        );
        columns.push(edges.alias("diagnosis_treatment"));
        columns.push(col("treatment_lab"));
        if numberings.context.new.iter().any(Option::is_some) {
            columns.push(known(CodeKind::Context).alias(CodeKind::Context.name()));
        }
        columns.extend(self.labels.iter().map(|label| Expr::Column(Column::from_name(label))));
        columns.extend(self.optional_columns().await?);
        let kept = self.engine.sql(include_str!("../../steps/kept.sql")).await?;
        let sorted = kept.select(columns)?.sort(vec![col("encounter_id").sort(true, false)])?;
        self.engine.write("writing encounters", sorted, &assembly.encounters().display().to_string()).await
    }

    /// The columns that are written only if they hold something.
    async fn optional_columns(&self) -> Result<Vec<Expr>> {
        let counts = include_str!("../../steps/count_optional.sql");
        let counts = numbers(&self.engine.query("looking at encounters", counts).await?);
        let columns = ["part", "prediction_time"].into_iter().zip(counts);
        Ok(columns.filter(|(_, count)| *count > 0).map(|(name, _)| col(name)).collect())
    }

    /// The mappings of rollups that came from files, by kind.
    fn mappings(&self) -> serde_json::Map<String, serde_json::Value> {
        let mapped = self.rollups.iter().filter_map(|rollup| Some((rollup.kind, rollup.mapping()?)));
        mapped.map(|(kind, mapping)| (kind.name().to_owned(), json!(mapping))).collect()
    }

    /// What made the dataset, for `dataset.json`.
    fn settings(&self) -> serde_json::Value {
        let settings = &self.request.settings;
        let options = self.options.iter().map(|(name, value)| (name.clone(), value.json()));
        json!({
            "input": self.request.input,
            "rules": self.request.rules,
            "options": options.collect::<serde_json::Map<_, _>>(),
            "min_codes": settings.min_codes,
            "max_codes": settings.max_codes,
            "min_count": settings.min_count,
            "rare": match settings.rare { Rare::Drop => "drop", Rare::Group => "group" },
            "lab_bins": settings.lab_bins,
            "rollup": settings.rollup,
            "rollup_unmapped": settings.rollup_unmapped,
            "labels": settings.labels,
            "limit": settings.limit,
            "split_by": settings.split_by,
            "split_seed": settings.split_seed,
        })
    }
}

/// The codes that have a number.
fn vocabulary(numberings: &PerKind<Numbering>) -> Vocabulary {
    PerKind::from_fn(|kind| {
        let Numbering { codes, new } = &numberings[kind];
        codes.iter().zip(new).filter(|(_, new)| new.is_some()).map(|(code, _)| code.clone()).collect()
    })
}
