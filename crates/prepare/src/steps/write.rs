//! The dataset folder: what is counted about it, and how it is written.

use std::path::PathBuf;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Column;
use datafusion::functions::expr_fn::octet_length;
use datafusion::logical_expr::{Expr, SortExpr, cast, col, lit, when};
use gct::dataset::{Assembly, Source};
use gct::job::Job;
use gct::record::{CodeKind, PerKind, Vocabulary};
use serde_json::json;

use super::{Numbering, Steps, add};
use crate::engine::{Progress, numbers, text_counts};
use crate::error::Result;
use crate::functions::{known_ids, part_of, true_edges};
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
        let [
            edges,
            with_edges,
            events_read,
            events_kept,
            links_read,
            links_kept,
            context_read,
            context_kept,
            ends,
            labels @ ..,
        ] = &counts[..]
        else {
            unreachable!("the query has nine counts, and two per label")
        };
        summary.ends_left_out = *ends;
        (summary.edges, summary.encounters_with_edges) = (*edges, *with_edges);
        (summary.events_kept, summary.links_kept) = (*events_kept, *links_kept);
        summary.context_kept = *context_kept;
        let rule = if self.request.like.is_some() { "unseen_code" } else { "rare_code" };
        add(&mut summary.context_dropped, rule, context_read - context_kept);
        add(&mut summary.events_dropped, rule, events_read - events_kept);
        add(&mut summary.links_dropped, "end_left_out", links_read - links_kept);
        let labels = self.labels.iter().zip(labels.chunks(2));
        let labels = labels.map(|(label, counts)| (label.clone(), counts[0], counts[1]));
        summary.labels = labels.filter(|(_, _, known)| *known > 0).collect();
        summary.labels_unknown = self.unknown_labels().await?;
        self.labels = summary.labels.iter().map(|label| label.0.clone()).collect();
        Ok(())
    }

    /// Why labels whose names the data have are not known: label, reason, kept encounters.
    async fn unknown_labels(&self) -> Result<Vec<(String, String, u64)>> {
        if !self.has_own_labels {
            return Ok(vec![]);
        }
        let counts = include_str!("../../steps/unknown_labels.sql");
        let counts = text_counts(&self.engine.query("counting labels", counts).await?);
        let split = |(text, count): (String, u64)| {
            let (label, reason) = text.rsplit_once(',')?;
            Some((label.to_owned(), reason.to_owned(), count))
        };
        Ok(counts.into_iter().filter_map(split).collect())
    }

    /// Writes the dataset and, if they are wanted, the conditional probabilities of its training split.
    pub(super) async fn finish(
        &self,
        assembly: Assembly,
        numberings: &PerKind<Numbering>,
        bounds: PerKind<serde_json::Map<String, serde_json::Value>>,
        summary: &Summary,
        job: &Job<'_, Progress>,
    ) -> Result<()> {
        self.write_encounters(&assembly.parts(summary.encounters_kept), numberings).await?;
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
                "lab_bounds": bounds.lab,
                "context_bounds": bounds.context,
                "rollups": self.mappings().await?,
            }),
        };
        if !self.onsets.is_empty() {
            source.findings["onset"] = json!(self.onsets);
        }
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

    /// Writes each part of the encounters to its file.
    async fn write_encounters(&self, parts: &[PathBuf], numberings: &PerKind<Numbering>) -> Result<()> {
        let columns = self.written_columns(numberings).await?;
        for (part, path) in (0_u32..).zip(parts) {
            let mut kept = self.engine.sql(include_str!("../../steps/kept.sql")).await?;
            if parts.len() > 1 {
                kept = kept.filter(part_of(col("subject_id"), parts.len()).eq(lit(part)))?;
            }
            let sorted = kept.select(columns.clone())?.sort(order())?;
            self.engine.write("writing encounters", sorted, &path.display().to_string()).await?;
        }
        Ok(())
    }

    /// The columns of the encounters.
    async fn written_columns(&self, numberings: &PerKind<Numbering>) -> Result<Vec<Expr>> {
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
        Ok(columns)
    }

    /// The columns that are written only if they hold something.
    async fn optional_columns(&self) -> Result<Vec<Expr>> {
        let counts = include_str!("../../steps/count_optional.sql");
        let counts = numbers(&self.engine.query("looking at encounters", counts).await?);
        let columns = [end()?, col("part"), col("prediction_time")].into_iter().zip(counts);
        Ok(columns.filter(|(_, count)| *count > 0).map(|(column, _)| column).collect())
    }

    /// The mappings of rollups that came from files or from the source's tables, by kind.
    async fn mappings(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        let files = self.rollups.iter().filter_map(|rollup| Some((rollup.kind, rollup.mapping()?)));
        let mapped = files.chain(self.common_groups().await?);
        Ok(mapped.map(|(kind, mapping)| (kind.name().to_owned(), json!(mapping))).collect())
    }

    /// What made the dataset, for `dataset.json`.
    fn settings(&self) -> serde_json::Value {
        let settings = &self.request.settings;
        let options = self.options.iter().map(|(name, value)| (name.clone(), value.json()));
        let mut all = json!({
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
            "context": settings.context,
            "labels": settings.labels,
            "limit": settings.limit,
            "split_by": settings.split_by,
            "split_seed": settings.split_seed,
        });
        if self.has_own_labels {
            all["within"] = json!(settings.within);
        }
        if !settings.onset.is_empty() {
            (all["onset"], all["prevalent"]) = (json!(settings.onset), json!(settings.prevalent));
        }
        all
    }
}

/// The order of encounters in a part, which the library checks: by subject, start and id, ids by length
/// first.
fn order() -> Vec<SortExpr> {
    let [subject, id] = ["subject_id", "encounter_id"].map(|name| [octet_length(col(name)), col(name)]);
    let keys = subject.into_iter().chain([col("start")]).chain(id);
    keys.map(|key| key.sort(true, false)).collect()
}

/// When encounters end. An end before the start is none.
fn end() -> Result<Expr> {
    let end = cast(col("end"), DataType::Timestamp(TimeUnit::Microsecond, None));
    let is_right = col("start").is_null().or(end.clone().gt_eq(col("start")));
    Ok(when(is_right, end).end()?.alias("end"))
}

/// The codes that have a number.
fn vocabulary(numberings: &PerKind<Numbering>) -> Vocabulary {
    PerKind::from_fn(|kind| {
        let Numbering { codes, new } = &numberings[kind];
        codes.iter().zip(new).filter(|(_, new)| new.is_some()).map(|(code, _)| code.clone()).collect()
    })
}
