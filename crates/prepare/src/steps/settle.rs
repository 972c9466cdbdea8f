//! Rules on encounters, rules on codes, and bounds of buckets depend on each other: an encounter with too few
//! codes takes its codes out of the counts and its values out of the bounds, and a code that is too rare then
//! can leave another encounter with too few. All of them hold for the dataset that is written. So they are
//! applied to the encounters that are left until none is dropped any more, which ends, since no encounter
//! comes back.

use std::collections::BTreeMap;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{UInt32Type, UInt64Type};
use datafusion::common::{Column, ScalarValue};
use datafusion::dataframe::DataFrame;
use datafusion::functions_nested::expr_fn::cardinality;
use datafusion::logical_expr::{Expr, col, lit, when};
use gct::coding::rare_description;
use gct::record::{Code, CodeKind, PerKind};

use super::buckets::{BUCKETED, Buckets};
use super::{Numbering, Steps, add, free_name};
use crate::engine::{numbers, single};
use crate::error::{Error, Result};
use crate::functions::{code_count, known_count, known_ids, true_edges, true_links};
use crate::like::Like;
use crate::settings::Rare;
use crate::sql::filled;
use crate::summary::Summary;

/// Links, diagnoses and treatments with new numbers of both, as edges.
type Between = fn([Expr; 3], [&[Option<u32>]; 2]) -> Expr;

/// What holds for the encounters that are left.
pub(super) struct Settled {
    /// The codes, rare ones without a new number or with that of their group.
    numberings: PerKind<Numbering>,
    buckets: PerKind<Option<Buckets>>,
}

impl Settled {
    /// The bounds of each code that has any.
    pub(super) fn bounds(&self) -> PerKind<serde_json::Map<String, serde_json::Value>> {
        PerKind::from_fn(|kind| self.buckets[kind].as_ref().map(Buckets::json).unwrap_or_default())
    }

    /// Lists of the codes of a kind in `alive`, as they are recorded: values in buckets, repetitions
    /// included.
    fn recorded(&self, kind: CodeKind) -> Expr {
        match &self.buckets[kind] {
            Some(buckets) => buckets.codes(col(kind.name())),
            None => col(kind.name()),
        }
    }

    /// The same under new numbers, ascending, each once.
    fn known(&self, kind: CodeKind) -> Expr {
        known_ids(self.recorded(kind), &self.numberings[kind].new)
    }

    /// The links between known codes.
    fn edges(&self, of: Between) -> Expr {
        of(
            [col("links"), self.known(CodeKind::Diagnosis), self.known(CodeKind::Treatment)],
            [&self.numberings.diagnosis.new, &self.numberings.treatment.new],
        )
    }
}

impl Steps<'_> {
    /// Whether what one rule drops can change what another says.
    pub(super) fn repeats(&self) -> bool {
        let settings = &self.request.settings;
        self.request.like.is_none()
            && (settings.min_count > 1 || BUCKETED.iter().any(|kind| self.has_values[*kind]))
    }

    /// Leaves only encounters in `alive` for which all rules hold, if these depend on each other.
    pub(super) async fn settle(&self, codes: PerKind<Numbering>, summary: &mut Summary) -> Result<Settled> {
        let mut grouped = PerKind::from_fn(|_| self.request.settings.rare == Rare::Group);
        for round in 1.. {
            let settled = self.rules_of(&codes, &mut grouped, summary).await?;
            if !self.repeats() {
                return Ok(settled);
            }
            let alive =
                self.engine.context.table("alive").await?.with_column("dropped", self.rule(&settled)?)?;
            self.engine.view("ruled", alive)?;
            if !self.drop_encounters(summary, "ruled").await? {
                return Ok(settled);
            }
            let left = self.engine.sql("SELECT * FROM ruled WHERE dropped IS NULL").await?;
            let name = format!("alive_{round}");
            self.engine.keep("applying rules", &name, left).await?;
            let left = self.engine.context.table(&name).await?;
            self.engine.view("alive", left)?;
            let before = if round == 1 { "joined".to_owned() } else { format!("alive_{}", round - 1) };
            self.engine.forget(&before)?;
        }
        unreachable!("every round but the last drops an encounter")
    }

    /// Bounds and rare codes of the encounters that are alive.
    async fn rules_of(
        &self,
        codes: &PerKind<Numbering>,
        grouped: &mut PerKind<bool>,
        summary: &mut Summary,
    ) -> Result<Settled> {
        let mut settled = Settled { numberings: codes.clone(), buckets: PerKind::from_fn(|_| None) };
        for kind in BUCKETED {
            if self.has_values[kind] {
                let buckets = self.buckets(kind, &codes[kind]).await?;
                settled.numberings[kind] = buckets.numbering();
                summary.bucketed[kind] = buckets.count();
                settled.buckets[kind] = Some(buckets);
            }
        }
        match &self.request.like {
            Some(like) => self.take_over(&mut settled, like, summary).await?,
            None if self.request.settings.min_count > 1 => {
                self.leave_out_rare(&mut settled, grouped, summary).await?;
            }
            None => {}
        }
        Ok(settled)
    }

    /// Takes the new numbers of rare codes away, or gives them that of a group. A group that is itself rare
    /// is none, from then on.
    async fn leave_out_rare(
        &self,
        settled: &mut Settled,
        grouped: &mut PerKind<bool>,
        summary: &mut Summary,
    ) -> Result<()> {
        let min_count = self.request.settings.min_count;
        for kind in CodeKind::ALL {
            let counts = self.counts(settled, kind).await?;
            let rare: Vec<usize> = (0..counts.len()).filter(|id| counts[*id] < min_count).collect();
            summary.rare[kind] = rare.iter().filter(|id| counts[**id] > 0).count() as u64;
            let group = (grouped[kind] && summary.rare[kind] > 0)
                .then(|| add_group(&mut settled.numberings[kind], kind, min_count));
            rare.iter().for_each(|id| settled.numberings[kind].new[*id] = group);
            let Some(group) = group else { continue };
            if self.counts(settled, kind).await?[group as usize] < min_count {
                grouped[kind] = false;
                rare.iter().for_each(|id| settled.numberings[kind].new[*id] = None);
            }
        }
        Ok(())
    }

    /// Gives codes the numbers that they have in the vocabulary of another dataset. Those that it does not
    /// have stand under its code for rare ones, if it has one, and are left out if not.
    async fn take_over(&self, settled: &mut Settled, like: &Like, summary: &mut Summary) -> Result<()> {
        for kind in CodeKind::ALL {
            let counts = self.counts(settled, kind).await?;
            let ids = like.ids(kind);
            let rare = like.coder.rare_code[kind].as_deref().and_then(|code| ids.get(code)).copied();
            let codes = settled.numberings[kind].codes.iter();
            let new: Vec<Option<u32>> = codes.map(|code| ids.get(code.code.as_str()).copied()).collect();
            let unknown = new.iter().zip(&counts).filter(|(id, count)| id.is_none() && **count > 0).count();
            match rare {
                Some(_) => summary.rare[kind] = unknown as u64,
                None => summary.unseen[kind] = unknown as u64,
            }
            let new = new.into_iter().map(|id| id.or(rare)).collect();
            settled.numberings[kind] = Numbering { codes: like.codes(kind), new };
        }
        if CodeKind::ALL.iter().any(|kind| settled.numberings[*kind].new.iter().any(Option::is_some)) {
            return Ok(());
        }
        let (name, value) = ("like".into(), like.path.clone());
        Err(Error::Choice {
            name,
            value,
            allowed: "a dataset with codes of these records: it has none".into(),
        })
    }

    /// In how many of the encounters that are alive each code occurs.
    async fn counts(&self, settled: &Settled, kind: CodeKind) -> Result<Vec<u64>> {
        let alive = self.engine.context.table("alive").await?;
        let lists = alive.select(vec![settled.known(kind).alias("codes")])?;
        self.count_codes(lists, "codes", settled.numberings[kind].codes.len()).await
    }

    /// In how many rows of a column of lists each number occurs.
    async fn count_codes(&self, frame: DataFrame, column: &str, size: usize) -> Result<Vec<u64>> {
        let frame = frame.aggregate(vec![], vec![code_count(col(column)).alias("counts")])?;
        let mut counts = vec![0; size];
        for batch in self.engine.run("counting codes", frame).await? {
            for row in 0..batch.num_rows() {
                let entries = batch.column(0).as_list::<i32>().value(row);
                let entries = entries.as_struct();
                let ids = entries.column(0).as_primitive::<UInt32Type>().values();
                for (id, count) in ids.iter().zip(entries.column(1).as_primitive::<UInt64Type>().values()) {
                    counts[*id as usize] += count;
                }
            }
        }
        Ok(counts)
    }

    /// The name of the first rule that an encounter breaks, or null.
    fn rule(&self, settled: &Settled) -> Result<Expr> {
        let mut rule = lit(ScalarValue::Utf8(None));
        for (name, kind, is_few, bound) in self.rules().into_iter().rev() {
            let length = cardinality(settled.known(kind));
            let breaks = if is_few { length.lt(lit(bound)) } else { length.gt(lit(bound)) };
            rule = when(breaks, lit(name)).otherwise(rule)?;
        }
        Ok(rule)
    }

    /// The rules on how many codes an encounter has, in the order in which they are applied: name, kind,
    /// whether the number is the least allowed, and the number.
    fn rules(&self) -> Vec<(String, CodeKind, bool, u64)> {
        let settings = &self.request.settings;
        let mut rules = vec![];
        for kind in CodeKind::ALL {
            if settings.min_codes[kind] > 0 {
                rules.push((format!("too_few_{}", kind.name()), kind, true, settings.min_codes[kind]));
            }
            if kind != CodeKind::Context || settings.max_codes[kind] > 0 {
                rules.push((format!("too_many_{}", kind.name()), kind, false, settings.max_codes[kind]));
            }
        }
        rules
    }

    /// Counts the encounters of a table that break a rule, with their events and links; whether there are
    /// any.
    async fn drop_encounters(&self, summary: &mut Summary, table: &str) -> Result<bool> {
        let counts = self.count_by("counting encounters", table, "dropped", "count(*)").await?;
        let counts: BTreeMap<String, u64> = counts.into_iter().filter(|(rule, _)| !rule.is_empty()).collect();
        for (name, ..) in self.rules() {
            add(&mut summary.dropped, &name, counts.get(&name).copied().unwrap_or(0));
        }
        let rows = filled(include_str!("../../steps/dropped_rows.sql"), &[("table", table)]);
        let rows = numbers(&self.engine.query("counting events", &rows).await?);
        add(&mut summary.events_dropped, "encounter_dropped", rows[0]);
        add(&mut summary.links_dropped, "encounter_dropped", rows[1]);
        add(&mut summary.context_dropped, "encounter_dropped", rows[2]);
        Ok(!counts.is_empty())
    }

    /// Encounters that no rule drops, with the numbers of their codes before they are made dense; and the
    /// codes under new numbers.
    pub(super) async fn accept(
        &self,
        mut settled: Settled,
        summary: &mut Summary,
    ) -> Result<PerKind<Numbering>> {
        let alive = self.engine.context.table("alive").await?;
        let columns = self.accepted_columns(&settled, &alive)?;
        self.engine.keep("applying rules", "accepted", alive.select(columns)?).await?;
        self.drop_encounters(summary, "accepted").await?;
        let count = "SELECT count(*) FROM accepted WHERE dropped IS NULL";
        summary.encounters_kept = single(&self.engine.query("counting encounters", count).await?);
        let kept = self.engine.sql("SELECT * FROM accepted WHERE dropped IS NULL").await?;
        for kind in CodeKind::ALL {
            let numbering = &mut settled.numberings[kind];
            let counts = self.count_codes(kept.clone(), kind.name(), numbering.codes.len()).await?;
            match self.request.like {
                Some(_) => numbering.new = (0..numbering.codes.len() as u32).map(Some).collect(),
                None => number_densely(numbering, &counts),
            }
            summary.vocabulary[kind] = numbering.new.iter().flatten().count() as u64;
            let total: u64 = counts.iter().sum();
            summary.codes_per_encounter[kind] = total as f64 / summary.encounters_kept.max(1) as f64;
        }
        Ok(settled.numberings)
    }

    /// The columns of `accepted`: those of `alive` with known codes and edges between them, the rule that
    /// drops an encounter, and how many of its events and links are known.
    fn accepted_columns(&self, settled: &Settled, alive: &DataFrame) -> Result<Vec<Expr>> {
        let column = |name: &String| {
            let kind = CodeKind::ALL.into_iter().find(|kind| kind.name() == name);
            Ok(match (name.as_str(), kind) {
                ("links", _) => settled.edges(true_edges).alias("links"),
                ("dropped", _) => self.rule(settled)?.alias("dropped"),
                (_, Some(kind)) => settled.known(kind).alias(name),
                (_, None) => Expr::Column(Column::from_name(name)),
            })
        };
        let fields = alive.schema().fields();
        let mut columns: Vec<Expr> =
            fields.iter().map(|field| column(field.name())).collect::<Result<_>>()?;
        let known = |kind| known_count(settled.recorded(kind), &settled.numberings[kind].new);
        let known_events = CodeKind::OF_PAPER
            .into_iter()
            .map(known)
            .reduce(|sum, count| sum + count)
            .unwrap_or_else(|| lit(0));
        columns.push(known_events.alias("known_events"));
        columns.push(known(CodeKind::Context).alias("known_context"));
        columns.push(cardinality(settled.edges(true_links)).alias("known_links"));
        Ok(columns)
    }
}

/// Gives the codes that occur numbers from 0 on, in the order that they have.
fn number_densely(numbering: &mut Numbering, counts: &[u64]) {
    let mut next = 0;
    let dense = counts.iter().map(|count| {
        next += u32::from(*count > 0);
        (*count > 0).then(|| next - 1)
    });
    numbering.new = dense.collect();
}

/// Adds the code that stands for rare ones; its number.
fn add_group(numbering: &mut Numbering, kind: CodeKind, min_count: u64) -> u32 {
    let code = free_name("rare", |name| numbering.codes.iter().any(|code| code.code == name));
    let description = Some(rare_description(kind, min_count));
    let id = numbering.codes.len() as u32;
    numbering.codes.push(Code { code, description, count: 0 });
    numbering.new.push(Some(id));
    id
}
