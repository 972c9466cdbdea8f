//! The column `why` of a table of predictions: the codes that change each row most when they are left out.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder, StructBuilder, UInt32Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields};

use super::Explainer;
use super::attribution::{Asked, Change, single_effects};
use crate::error::Result;
use crate::job::Stop;

/// Effects of codes on rows that are in memory at a time.
const EFFECTS: usize = 1 << 20;

/// Reasons that are not yet written.
pub(super) struct WhyColumn<'a> {
    explainer: Explainer<'a>,
    strongest: usize,
    rows: ListBuilder<StructBuilder>,
}

impl<'a> WhyColumn<'a> {
    /// Tells so many codes with each row.
    pub(super) fn new(explainer: Explainer<'a>, strongest: usize) -> Self {
        let fields = fields(explainer.predictor().sees_history());
        let builder = StructBuilder::from_fields(fields.clone(), 0);
        let item = Field::new("element", DataType::Struct(fields), false);
        WhyColumn { explainer, strongest, rows: ListBuilder::new(builder).with_field(item) }
    }

    /// Adds the reasons of the rows of some samples; `done` hears how many samples are done.
    pub(super) fn add(
        &mut self,
        mut samples: &[Asked<'_>],
        stop: &Stop,
        mut done: impl FnMut(usize),
    ) -> Result<()> {
        let all = samples.len();
        while !samples.is_empty() {
            let (some, rest) = samples.split_at(fitting(samples));
            let codes = |asked: &Asked<'_>| asked.codes().collect();
            let effects = single_effects(self.explainer.predictor(), some, codes, stop)?;
            for (asked, rows) in some.iter().zip(effects) {
                for effects in rows {
                    let strongest = effects.iter().take(self.strongest);
                    for effect in strongest {
                        let change = self.explainer.change(&asked.sample, effect);
                        self.item(&change);
                    }
                    self.rows.append(true);
                }
            }
            samples = rest;
            done(all - samples.len());
        }
        Ok(())
    }

    fn item(&mut self, change: &Change) {
        let item = self.rows.values();
        let mut first = 0;
        if let Some(visits_before) = change.visits_before {
            let column = item.field_builder::<UInt32Builder>(0).expect("a column of counts");
            column.append_value(visits_before as u32);
            first = 1;
        }
        let mut text = |index: usize, value: Option<&str>| {
            let index = first + index;
            item.field_builder::<StringBuilder>(index).expect("a column of texts").append_option(value);
        };
        text(0, Some(change.kind.name()));
        text(1, Some(&change.code));
        text(2, change.description.as_deref());
        let mut number = |index: usize, value: f64| {
            let index = first + index;
            item.field_builder::<Float64Builder>(index).expect("a column of numbers").append_value(value);
        };
        number(3, change.change);
        number(4, change.log_odds_change);
        item.append(true);
    }

    /// The rows with the column, for all rows since the last time.
    pub(super) fn beside(&mut self, rows: &RecordBatch) -> RecordBatch {
        let why: ArrayRef = Arc::new(self.rows.finish());
        let mut fields: Vec<Arc<Field>> = rows.schema().fields().to_vec();
        fields.push(Arc::new(Field::new("why", why.data_type().clone(), false)));
        let columns = rows.columns().iter().cloned().chain([why]).collect();
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        RecordBatch::try_new(schema, columns).expect("there is a reason for every row")
    }
}

/// What is told of each code; with history, of which visit it is.
fn fields(with_history: bool) -> Fields {
    let field = |(name, kind, may_lack): (&str, DataType, bool)| Field::new(name, kind, may_lack);
    let visits_before = with_history.then_some(("visits_before", DataType::UInt32, false));
    let of_code = [
        ("kind", DataType::Utf8, false),
        ("code", DataType::Utf8, false),
        ("description", DataType::Utf8, true),
        ("change", DataType::Float64, false),
        ("log_odds_change", DataType::Float64, false),
    ];
    visits_before.into_iter().chain(of_code).map(field).collect()
}

/// How many samples have no more effects than there is room for; one at least.
fn fitting(samples: &[Asked<'_>]) -> usize {
    let mut effects = 0;
    let fits = |asked: &&Asked<'_>| {
        let is_first = effects == 0;
        effects += (asked.statements.len() * asked.codes().count()).max(1);
        is_first || effects <= EFFECTS
    };
    samples.iter().take_while(fits).count()
}
