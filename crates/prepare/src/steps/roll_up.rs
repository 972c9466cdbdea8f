//! Codes replaced by their groups, before they are counted, numbered and put into buckets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use gct::coding::{Group, Unmapped, unmapped_description};
use gct::record::CodeKind;

use super::{Steps, free_name, input};
use crate::engine::as_text;
use crate::error::Result;
use crate::rollup::{FoundGroups, Nearest, Rollup};
use crate::sql::{filled, quoted};
use crate::summary::{RollupCounts, Summary};

/// The rule that drops events of codes that a rollup does not map.
const UNMAPPED_CODE: &str = "unmapped_code";

/// The columns of `rollup`, all of them text.
const COLUMNS: [&str; 5] = ["kind", "code", "group_code", "description", "dropped"];

/// A code that events have.
struct Recorded {
    code: String,
    description: Option<String>,
    events: u64,
}

/// What becomes of one code.
struct Rolled {
    kind: CodeKind,
    code: String,
    group: String,
    description: Option<String>,
    is_dropped: bool,
}

impl Steps<'_> {
    /// The tally with the group of each code, as the view `rolled`.
    pub(super) async fn roll_up(&mut self, summary: &mut Summary) -> Result<()> {
        let mut rows = vec![];
        let mut of_source = vec![];
        for rollup in &self.rollups {
            let codes = self.recorded(rollup.kind).await?;
            let found = self.groups_of_source(rollup, codes.len()).await?;
            let groups = codes.iter().map(|recorded| match &found {
                Some(found) => found.of.get(&recorded.code).cloned(),
                None => rollup.group(&recorded.code),
            });
            let groups: Vec<Option<Group>> = groups.collect();
            let mut counts = count(rollup, &codes, &groups);
            let like = self.request.like.as_ref();
            let together = like.and_then(|like| like.coder.unmapped_code[rollup.kind].clone());
            let unmapped = self.request.settings.rollup_unmapped;
            rows.extend(roll_up(rollup.kind, unmapped, together, &codes, &groups));
            if let Some(found) = found {
                counts.ties = Some(found.ties);
                of_source.push((rollup.kind, found.of));
            }
            summary.rollups.push(counts);
        }
        self.groups = of_source;
        self.engine.context.register_batch("rollup", table(&rows))?;
        self.engine.view("rolled", self.engine.sql(include_str!("../../steps/rolled.sql")).await?)
    }

    /// The groups that the source's tables have for codes, if that is what a rollup asks for.
    async fn groups_of_source(&self, rollup: &Rollup, codes: usize) -> Result<Option<FoundGroups>> {
        let Some((kind, chosen)) = rollup.chosen() else { return Ok(None) };
        let (query, values) = input::groups(&self.request.source, kind, chosen, &self.values)?;
        self.engine.view("source_groups", query.plan(self.engine, &values).await?)?;
        let sql = filled(include_str!("../../steps/groups.sql"), &[("kind", &*quoted(kind.name()))]);
        let mut nearest = Nearest::new();
        for batch in self.engine.query("looking for groups", &sql).await? {
            let [codes, groups, descriptions] = [0, 1, 2].map(|column| as_text(batch.column(column)));
            let [codes, groups, descriptions] =
                [&codes, &groups, &descriptions].map(|column| column.as_string::<i32>());
            for row in 0..batch.num_rows() {
                let description = descriptions.is_valid(row).then(|| descriptions.value(row).to_owned());
                let group = Group { code: groups.value(row).to_owned(), description };
                nearest.entry(codes.value(row).to_owned()).or_default().push(group);
            }
        }
        chosen.settle(kind, &rollup.rule, codes, nearest).map(Some)
    }

    /// The groups that the source's tables have, of codes that not too few encounters of the dataset have:
    /// others must not be disclosed.
    pub(super) async fn common_groups(&self) -> Result<Vec<(CodeKind, BTreeMap<String, String>)>> {
        let settings = &self.request.settings;
        let least = settings.min_count.max(settings.min_cell).to_string();
        let mut all = vec![];
        for (kind, groups) in &self.groups {
            let parts = [("kind", &*quoted(kind.name())), ("least", &least)];
            let sql = filled(include_str!("../../steps/common_codes.sql"), &parts);
            let mut common = BTreeMap::new();
            for batch in self.engine.query("counting codes", &sql).await? {
                let codes = as_text(batch.column(0));
                let known = codes.as_string::<i32>().iter().flatten();
                let known = known.filter_map(|code| Some((code.to_owned(), groups.get(code)?.code.clone())));
                common.extend(known);
            }
            all.push((*kind, common));
        }
        Ok(all)
    }

    /// The codes of a kind that events have, in their order.
    async fn recorded(&self, kind: CodeKind) -> Result<Vec<Recorded>> {
        let parts = [("kind", &*quoted(kind.name()))];
        let sql = filled(include_str!("../../steps/recorded_codes.sql"), &parts);
        let mut recorded = vec![];
        for batch in self.engine.query("reading codes", &sql).await? {
            let [codes, descriptions] = [0, 1].map(|column| as_text(batch.column(column)));
            let (codes, descriptions) = (codes.as_string::<i32>(), descriptions.as_string::<i32>());
            let events = batch.column(2).as_primitive::<Int64Type>().values();
            recorded.extend((0..batch.num_rows()).map(|row| Recorded {
                code: codes.value(row).into(),
                description: descriptions.is_valid(row).then(|| descriptions.value(row).into()),
                events: events[row] as u64,
            }));
        }
        Ok(recorded)
    }
}

/// What becomes of the codes of a kind, which have these groups. Codes in no group are called as another
/// dataset calls them, if one decides.
fn roll_up(
    kind: CodeKind,
    unmapped: Unmapped,
    together: Option<String>,
    codes: &[Recorded],
    groups: &[Option<Group>],
) -> Vec<Rolled> {
    let is_taken = |name: &str| {
        codes.iter().any(|recorded| recorded.code == name)
            || groups.iter().flatten().any(|group| group.code == name)
    };
    let together = Group {
        code: together.unwrap_or_else(|| free_name("unmapped", is_taken)),
        description: Some(unmapped_description(kind)),
    };
    let row = |(recorded, group): (&Recorded, &Option<Group>)| {
        let is_dropped = group.is_none() && unmapped == Unmapped::Drop;
        let group = group.clone().unwrap_or_else(|| match unmapped {
            Unmapped::Group => together.clone(),
            Unmapped::Keep | Unmapped::Drop => Group { code: recorded.code.clone(), description: None },
        });
        let Group { code: group, description } = group;
        Rolled { kind, code: recorded.code.clone(), group, description, is_dropped }
    };
    let mut rolled: Vec<Rolled> = codes.iter().zip(groups).map(row).collect();
    describe(&mut rolled, codes);
    rolled
}

fn count(rollup: &Rollup, codes: &[Recorded], groups: &[Option<Group>]) -> RollupCounts {
    let unmapped = || codes.iter().zip(groups).filter(|(_, group)| group.is_none());
    let distinct: BTreeSet<&String> = groups.iter().flatten().map(|group| &group.code).collect();
    RollupCounts {
        kind: rollup.kind,
        rule: rollup.rule.clone(),
        codes_mapped: groups.iter().flatten().count() as u64,
        codes_unmapped: unmapped().count() as u64,
        groups: distinct.len() as u64,
        events_unmapped: unmapped().map(|(recorded, _)| recorded.events).sum(),
        ties: None,
    }
}

/// Says what groups mean: what the rollup says, or else what a code of the same name means.
fn describe(rolled: &mut [Rolled], codes: &[Recorded]) {
    let own = rolled.iter().zip(codes).filter(|(row, recorded)| row.group == recorded.code);
    let own = own.filter_map(|(row, recorded)| Some((&row.group, recorded.description.as_ref()?)));
    let said = rolled.iter().filter_map(|row| Some((&row.group, row.description.as_ref()?)));
    let meanings: BTreeMap<String, String> =
        own.chain(said).map(|(group, meaning)| (group.clone(), meaning.clone())).collect();
    rolled.iter_mut().for_each(|row| row.description = meanings.get(&row.group).cloned());
}

/// The table `rollup`.
fn table(rows: &[Rolled]) -> RecordBatch {
    let fields = COLUMNS.map(|name| Field::new(name, DataType::Utf8, true)).to_vec();
    let column = |text: fn(&Rolled) -> Option<&str>| {
        Arc::new(rows.iter().map(text).collect::<StringArray>()) as Arc<dyn Array>
    };
    let columns = vec![
        column(|row| Some(row.kind.name())),
        column(|row| Some(&row.code)),
        column(|row| Some(&row.group)),
        column(|row| row.description.as_deref()),
        column(|row| row.is_dropped.then_some(UNMAPPED_CODE)),
    ];
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .unwrap_or_else(|error| panic!("five columns of one length: {error}"))
}
