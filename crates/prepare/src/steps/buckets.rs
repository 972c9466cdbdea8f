//! Buckets for the values of labs and of context, whose bounds are quantiles of the training split.

use std::collections::BTreeMap;
use std::ops::Range;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Float64Type, UInt32Type};
use datafusion::logical_expr::Expr;
use gct::coding::{bucket_code, bucket_text};
use gct::record::{Code, CodeKind};
use serde_json::json;

use super::{Numbering, Steps};
use crate::error::Result;
use crate::functions::bucketed;
use crate::sql::filled;

/// The kinds of codes whose values go into buckets.
pub(super) const BUCKETED: [CodeKind; 2] = [CodeKind::Context, CodeKind::Lab];

/// The buckets of all codes of a kind, and the codes that they make.
pub(super) struct Buckets {
    /// The bounds of each code, by its number; none for a code without values in the training split.
    bounds: Vec<Vec<f64>>,
    /// The codes as they are recorded.
    recorded: Vec<Code>,
    /// All codes that values can lead to, in order.
    codes: Vec<Code>,
    /// For each recorded code the number of the code without a value, then those of its buckets.
    numbers: Vec<u32>,
}

impl Buckets {
    fn new(kind: CodeKind, recorded: Vec<Code>, bounds: Vec<Vec<f64>>) -> Self {
        let mut codes = BTreeMap::new();
        let each = || recorded.iter().zip(&bounds).flat_map(|(code, bounds)| codes_of(kind, code, bounds));
        for (code, description) in each() {
            codes.entry(code).or_insert(description);
        }
        let number: BTreeMap<&String, u32> = codes.keys().zip(0..).collect();
        let numbers = each().map(|(code, _)| number[&code]).collect();
        let codes = codes.iter().map(|(code, description)| Code {
            code: code.clone(),
            description: description.clone(),
            count: 0,
        });
        let codes = codes.collect();
        Buckets { bounds, recorded, codes, numbers }
    }

    /// The codes of all buckets.
    pub(super) fn numbering(&self) -> Numbering {
        Numbering { codes: self.codes.clone(), new: (0..self.codes.len() as u32).map(Some).collect() }
    }

    /// The codes of a list of recorded codes with values.
    pub(super) fn codes(&self, recorded: Expr) -> Expr {
        let mut starts = vec![0];
        starts.extend(self.bounds.iter().scan(0, |end, bounds| {
            *end += bounds.len() as u32;
            Some(*end)
        }));
        bucketed(recorded, &starts, &self.bounds.concat(), &self.numbers)
    }

    /// How many codes have bounds.
    pub(super) fn count(&self) -> u64 {
        self.bounds.iter().filter(|bounds| !bounds.is_empty()).count() as u64
    }

    /// The bounds of each code that has any.
    pub(super) fn json(&self) -> serde_json::Map<String, serde_json::Value> {
        let with_bounds = self.recorded.iter().zip(&self.bounds).filter(|(_, bounds)| !bounds.is_empty());
        with_bounds.map(|(code, bounds)| (code.code.clone(), json!(bounds))).collect()
    }
}

/// A code without a value, and those of its buckets, with their descriptions: `K//2-of-5` for a lab,
/// `weight=2-of-5` for context. A code without bounds is one.
fn codes_of(kind: CodeKind, code: &Code, bounds: &[f64]) -> Vec<(String, Option<String>)> {
    let plain = (code.code.clone(), code.description.clone());
    if bounds.is_empty() {
        return vec![plain.clone(), plain];
    }
    let of = bounds.len() + 1;
    let name = code.description.as_ref().unwrap_or(&code.code);
    let buckets = (0..of).map(|bucket| {
        let description = format!("{name}, {}", bucket_text(bucket, bounds));
        (bucket_code(kind, &code.code, bucket, of), Some(description))
    });
    std::iter::once(plain).chain(buckets).collect()
}

impl Steps<'_> {
    /// The buckets of codes of a kind, of the encounters that are alive, or of another dataset if it decides.
    pub(super) async fn buckets(&self, kind: CodeKind, codes: &Numbering) -> Result<Buckets> {
        if let Some(like) = &self.request.like {
            let bounds = codes.codes.iter().map(|code| like.bounds(kind, &code.code));
            return Ok(Buckets::new(kind, codes.codes.clone(), bounds.collect()));
        }
        let values = filled(
            include_str!("../../steps/values.sql"),
            &[("is_training", &self.is_training("alive")), ("kind", kind.name())],
        );
        self.engine.view("bucket_values", self.engine.sql(&values).await?)?;
        let totals = self.count_values(codes.codes.len()).await?;
        let mut bounds = vec![];
        for range in ranges(&totals, self.engine.room() / size_of::<f64>()) {
            let values = self.values(&totals, range).await?;
            let bins = self.request.settings.lab_bins as usize;
            bounds.extend(values.into_iter().map(|values| quantiles(values, bins)));
        }
        Ok(Buckets::new(kind, codes.codes.clone(), bounds))
    }

    /// How many values each code has; 0 where they are too few.
    async fn count_values(&self, codes: usize) -> Result<Vec<usize>> {
        let mut totals = vec![0; codes];
        for (id, total) in self.count_by("counting values", "bucket_values", "id", "count(*)").await? {
            // A bound of few values is nearly a value.
            if let (Ok(id), true) = (id.parse::<usize>(), total >= self.request.settings.min_cell) {
                totals[id] = total as usize;
            }
        }
        Ok(totals)
    }

    /// The values of some codes, by code.
    async fn values(&self, totals: &[usize], codes: Range<usize>) -> Result<Vec<Vec<f64>>> {
        let mut found: Vec<Vec<f64>> =
            totals[codes.clone()].iter().map(|total| Vec::with_capacity(*total)).collect();
        let parts = [("start", &*codes.start.to_string()), ("end", &codes.end.to_string())];
        let sql = filled(include_str!("../../steps/some_values.sql"), &parts);
        let each = |batch: RecordBatch| {
            let values = batch.column(1).as_primitive::<Float64Type>().values();
            for (id, value) in batch.column(0).as_primitive::<UInt32Type>().values().iter().zip(values) {
                let id = *id as usize;
                if totals[id] > 0 {
                    found[id - codes.start].push(*value);
                }
            }
            Ok(())
        };
        self.engine.each_batch("bucketing values", self.engine.sql(&sql).await?, each).await?;
        Ok(found)
    }
}

/// Codes one after the other whose values are at most so many together, or one code with more.
fn ranges(totals: &[usize], most: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = vec![];
    let mut held = 0;
    for (code, total) in totals.iter().enumerate() {
        match ranges.last_mut() {
            Some(range) if held + total <= most => {
                range.end = code + 1;
                held += total;
            }
            _ => {
                ranges.push(code..code + 1);
                held = *total;
            }
        }
    }
    ranges
}

/// The values that cut all of them into equal parts, ascending: each the least that a share of part/parts
/// does not exceed. Equal ones are one.
fn quantiles(mut values: Vec<f64>, parts: usize) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let cuts =
        (1..parts).filter_map(|part| values.get((values.len() * part).div_ceil(parts).checked_sub(1)?));
    let mut bounds: Vec<f64> = cuts.copied().collect();
    bounds.dedup();
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_the_least_values_that_a_share_does_not_exceed() {
        // Of 1 2 2 2 3, the quarters end at 1.25, 2.5 and 3.75 values: all at 2. Of two times -1 and six
        // times 0.5, at 2, 4 and 6.
        assert_eq!(quantiles(vec![2.0, 1.0, 3.0, 2.0, 2.0], 4), [2.0]);
        assert_eq!(quantiles(vec![0.5, -1.0, 0.5, 0.5, -1.0, 0.5, 0.5, 0.5], 4), [-1.0, 0.5]);
        assert_eq!(quantiles(vec![7.0], 5), [7.0]);
        assert_eq!(quantiles(vec![], 5), [0.0; 0]);
    }

    #[test]
    fn labs_are_taken_together_as_long_as_they_fit() {
        assert_eq!(ranges(&[3, 0, 4, 9, 1, 1], 7), [0..3, 3..4, 4..6]);
        assert_eq!(ranges(&[], 7), [0..0; 0]);
    }

    #[test]
    fn codes_of_buckets_are_in_order_and_a_code_that_is_recorded_as_one_is_the_same() {
        let lab = |code: &str| Code { code: code.into(), description: Some(format!("{code}!")), count: 0 };
        let recorded = vec![lab("K"), lab("Na"), lab("Na//1-of-2")];
        let buckets = Buckets::new(CodeKind::Lab, recorded, vec![vec![], vec![140.0], vec![]]);
        let codes: Vec<&str> = buckets.codes.iter().map(|code| code.code.as_str()).collect();
        assert_eq!(codes, ["K", "Na", "Na//1-of-2", "Na//2-of-2"]);
        assert_eq!(buckets.numbers, [0, 0, 1, 2, 3, 2, 2]);
        assert_eq!(buckets.codes[3].description.as_deref(), Some("Na!, over 140"));
        let context = codes_of(CodeKind::Context, &lab("weight"), &[60.0]);
        assert_eq!(context[2], ("weight=2-of-2".into(), Some("weight!, over 60".into())));
    }
}
