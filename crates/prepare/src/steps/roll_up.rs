//! Codes replaced by their groups, before they are counted, numbered and put into buckets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use gct::coding::{Group, Unmapped, unmapped_description};
use gct::record::CodeKind;

use super::{Steps, free_name};
use crate::engine::as_text;
use crate::error::Result;
use crate::rollup::Rollup;
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
    pub(super) async fn roll_up(&self, summary: &mut Summary) -> Result<()> {
        let mut rows = vec![];
        for rollup in &self.rollups {
            let codes = self.recorded(rollup.kind).await?;
            let like = self.request.like.as_ref();
            let together = like.and_then(|like| like.coder.unmapped_code[rollup.kind].clone());
            let unmapped = self.request.settings.rollup_unmapped;
            let (rolled, counts) = roll_up(rollup, unmapped, together, &codes);
            rows.extend(rolled);
            summary.rollups.push(counts);
        }
        self.engine.context.register_batch("rollup", table(&rows))?;
        self.engine.view("rolled", self.engine.sql(include_str!("../../steps/rolled.sql")).await?)
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

/// What becomes of the codes of a kind, and the counts of it. Codes in no group are called as another dataset
/// calls them, if one decides.
fn roll_up(
    rollup: &Rollup,
    unmapped: Unmapped,
    together: Option<String>,
    codes: &[Recorded],
) -> (Vec<Rolled>, RollupCounts) {
    let groups: Vec<Option<Group>> = codes.iter().map(|recorded| rollup.group(&recorded.code)).collect();
    let counts = count(rollup, codes, &groups);
    let is_taken = |name: &str| {
        codes.iter().any(|recorded| recorded.code == name)
            || groups.iter().flatten().any(|group| group.code == name)
    };
    let together = Group {
        code: together.unwrap_or_else(|| free_name("unmapped", is_taken)),
        description: Some(unmapped_description(rollup.kind)),
    };
    let row = |(recorded, group): (&Recorded, &Option<Group>)| {
        let is_dropped = group.is_none() && unmapped == Unmapped::Drop;
        let group = group.clone().unwrap_or_else(|| match unmapped {
            Unmapped::Group => together.clone(),
            Unmapped::Keep | Unmapped::Drop => Group { code: recorded.code.clone(), description: None },
        });
        let Group { code: group, description } = group;
        Rolled { kind: rollup.kind, code: recorded.code.clone(), group, description, is_dropped }
    };
    let mut rolled: Vec<Rolled> = codes.iter().zip(&groups).map(row).collect();
    describe(&mut rolled, codes);
    (rolled, counts)
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
