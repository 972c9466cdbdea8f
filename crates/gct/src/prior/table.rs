//! Conditional probabilities as a table that other programs can read, and that a training can start from.
//!
//! A row per ordered pair of codes that were seen together: both codes by kind, id and name, in how many
//! encounters both occur (`count`), in how many the given one does (`given_count`), the share of the two
//! (`probability`), how many encounters there are (`encounters`, which older tables do not have), and how
//! much more often the two are together than by chance (`association`). Reading goes by names, so that a
//! table counted on one dataset serves another.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Conditional, Counter, PairCounter, Prior};
use crate::dataset::{self, Table};
use crate::error::{Error, Result};
use crate::files::Overwrite;
use crate::record::{Code, CodeKind, PerKind, Vocabulary};

/// The columns that are read. Ids and probabilities are not: they follow from the others.
fn schema() -> Schema {
    let text = |name| Field::new(name, DataType::Utf8, false);
    let number = |name| Field::new(name, DataType::UInt32, false);
    Schema::new(vec![
        text("given_kind"),
        text("given_code"),
        text("kind"),
        text("code"),
        number("count"),
        number("given_count"),
    ])
}

impl Prior {
    /// Writes all conditional probabilities that are not zero, as Parquet: `given_kind`, `given_id`,
    /// `given_code`, `kind`, `id`, `code`, `count`, `given_count`, `probability`, `encounters`,
    /// `association`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, path: &Path, overwrite: Overwrite, vocabulary: &Vocabulary) -> Result<()> {
        let name = |(kind, id): (CodeKind, u32)| vocabulary[kind][id as usize].code.as_str();
        let columns: Vec<(_, ArrayRef)> = vec![
            ("given_kind", self.texts(|c| c.given.0.name())),
            ("given_id", self.numbers(|c| c.given.1)),
            ("given_code", self.texts(|c| name(c.given))),
            ("kind", self.texts(|c| c.code.0.name())),
            ("id", self.numbers(|c| c.code.1)),
            ("code", self.texts(|c| name(c.code))),
            ("count", self.numbers(|c| c.count)),
            ("given_count", self.numbers(|c| c.given_count)),
            (
                "probability",
                Arc::new(Float64Array::from_iter_values(self.conditionals().map(|c| c.probability()))),
            ),
            ("encounters", self.numbers(|_| u32::try_from(self.encounters).unwrap_or(u32::MAX))),
            (
                "association",
                Arc::new(Float64Array::from_iter_values(self.conditionals().map(|c| self.chi_of(&c)))),
            ),
        ];
        dataset::write_table(path, overwrite, columns)
    }

    /// The association of the two codes, whichever is given.
    fn chi_of(&self, of: &Conditional) -> f64 {
        let is_forward = of.given.0 < of.code.0;
        let (cause, effect) = if is_forward { (of.given, of.code) } else { (of.code, of.given) };
        self.association(cause, effect)
    }

    fn texts<'a>(&self, text: impl Fn(Conditional) -> &'a str) -> ArrayRef {
        let mut texts = LargeStringBuilder::new();
        self.conditionals().for_each(|conditional| texts.append_value(text(conditional)));
        Arc::new(texts.finish())
    }

    fn numbers(&self, number: impl Fn(Conditional) -> u32) -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(self.conditionals().map(number)))
    }

    /// Reads what [`Prior::write`] wrote, for the codes of a vocabulary, and counts the rows that have other
    /// codes.
    ///
    /// # Errors
    /// If the file cannot be read, if counts contradict each other, or if it has none of the codes.
    pub fn read(path: &Path, vocabulary: &Vocabulary) -> Result<(Prior, u64)> {
        let mut reading = Reading::new(vocabulary);
        let mut first_row = 0;
        for batch in Table::open(path.to_owned(), &schema(), None)?.batches()? {
            let batch = batch?;
            reading.take(&batch).map_err(|(row, column, problem)| Error::Row {
                path: path.to_owned(),
                row: first_row + row as u64 + 1,
                column,
                problem: problem.into(),
            })?;
            first_row += batch.num_rows() as u64;
        }
        if !reading.is_symmetric() {
            let problem = "a pair of codes stands in it only one way round".into();
            return Err(Error::Damaged { path: path.to_owned(), problem });
        }
        let (prior, unknown) = (reading.counter.finish(), reading.unknown);
        if prior.pairs() == 0 {
            let problem = format!("none of its {first_row} rows has two codes of the dataset");
            return Err(Error::DatasetMismatch { path: path.to_owned(), problem });
        }
        Ok((prior, unknown))
    }
}

impl Prior {
    /// The codes that are in what [`Prior::write`] wrote, by name, in the order in which they come.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn codes_in(path: &Path) -> Result<Vocabulary> {
        let mut vocabulary = Vocabulary::default();
        let mut known: PerKind<FxHashSet<String>> = PerKind::default();
        for batch in Table::open(path.to_owned(), &schema(), None)?.batches()? {
            let batch = batch?;
            let column = |name: &str| batch.column_by_name(name).expect("the columns were checked");
            for (kinds, codes) in [("given_kind", "given_code"), ("kind", "code")] {
                let (kinds, codes) = (column(kinds).as_string::<i32>(), column(codes).as_string::<i32>());
                for (name, code) in kinds.iter().flatten().zip(codes.iter().flatten()) {
                    let Some(kind) = CodeKind::ALL.into_iter().find(|kind| kind.name() == name) else {
                        continue;
                    };
                    if known[kind].insert(code.to_owned()) {
                        vocabulary[kind].push(Code { code: code.to_owned(), description: None, count: 0 });
                    }
                }
            }
        }
        Ok(vocabulary)
    }
}

/// A row that breaks a rule, its column, and the rule.
type Refusal = (usize, String, &'static str);

/// A table being read.
struct Reading<'a> {
    ids: PerKind<FxHashMap<&'a str, u32>>,
    counter: Counter,
    unknown: u64,
}

impl<'a> Reading<'a> {
    fn new(vocabulary: &'a Vocabulary) -> Self {
        let ids = |kind: CodeKind| vocabulary[kind].iter().map(|code| code.code.as_str()).zip(0..).collect();
        let sizes = PerKind::from_fn(|kind| vocabulary[kind].len());
        Reading { ids: PerKind::from_fn(ids), counter: Counter::new(sizes), unknown: 0 }
    }

    fn take(&mut self, batch: &RecordBatch) -> Result<(), Refusal> {
        let column = |name: &str| batch.column_by_name(name).expect("the columns were checked");
        for field in schema().fields() {
            if let Some(row) = (0..batch.num_rows()).find(|row| column(field.name()).is_null(*row)) {
                return Err((row, field.name().clone(), "must not be null"));
            }
        }
        let texts = |name| column(name).as_string::<i32>();
        let numbers = |name| column(name).as_primitive::<UInt32Type>();
        let (given_kinds, given_codes) = (texts("given_kind"), texts("given_code"));
        let (kinds, codes) = (texts("kind"), texts("code"));
        let (counts, given_counts) = (numbers("count"), numbers("given_count"));
        let encounters = batch.column_by_name("encounters");
        if let Some(all) = encounters.and_then(|all| all.as_primitive_opt::<UInt32Type>()) {
            let of_batch = all.iter().flatten().map(u64::from);
            self.counter.encounters = of_batch.fold(self.counter.encounters, u64::max);
        }
        for row in 0..batch.num_rows() {
            let kind = |name: &str| CodeKind::ALL.into_iter().find(|kind| kind.name() == name);
            let expected = "expected diagnosis, treatment or lab";
            let given_kind = kind(given_kinds.value(row)).ok_or((row, "given_kind".to_owned(), expected))?;
            let kind = kind(kinds.value(row)).ok_or((row, "kind".to_owned(), expected))?;
            let given = self.ids[given_kind].get(given_codes.value(row)).copied();
            let code = self.ids[kind].get(codes.value(row)).copied();
            let (Some(given), Some(code)) = (given, code) else {
                self.unknown += 1;
                continue;
            };
            let (count, given_count) = (counts.value(row), given_counts.value(row));
            self.set((given_kind, given), (kind, code), count, given_count)
                .map_err(|(column, problem)| (row, column.to_owned(), problem))?;
        }
        Ok(())
    }

    /// Whether both codes of every pair were counted: each pair has a row with either of them given.
    fn is_symmetric(&self) -> bool {
        let Counter { codes, diagnosis_treatment, treatment_lab, .. } = &self.counter;
        let counted = |pairs: &PairCounter, causes: &[u32], effects: &[u32]| {
            let rows = pairs.iter().zip(causes);
            rows.into_iter().all(|(row, cause)| {
                row.iter().all(|(effect, count)| count <= cause && *count <= effects[*effect as usize])
            })
        };
        counted(diagnosis_treatment, &codes.diagnosis, &codes.treatment)
            && counted(treatment_lab, &codes.treatment, &codes.lab)
    }

    /// Sets the counts of a pair, which rows before may have set to the same.
    fn set(
        &mut self,
        given: (CodeKind, u32),
        code: (CodeKind, u32),
        count: u32,
        given_count: u32,
    ) -> Result<(), (&'static str, &'static str)> {
        use CodeKind::{Context, Diagnosis, Lab, Treatment};
        let (pairs, cause, effect) = match (given.0, code.0) {
            (Diagnosis, Treatment) => (&mut self.counter.diagnosis_treatment, given.1, code.1),
            (Treatment, Diagnosis) => (&mut self.counter.diagnosis_treatment, code.1, given.1),
            (Treatment, Lab) => (&mut self.counter.treatment_lab, given.1, code.1),
            (Lab, Treatment) => (&mut self.counter.treatment_lab, code.1, given.1),
            (Diagnosis | Lab, Diagnosis | Lab) | (Treatment, Treatment) | (Context, _) | (_, Context) => {
                return Err(("kind", "expected a kind next to that of the given code"));
            }
        };
        if count == 0 || count > given_count {
            return Err(("count", "expected a number from 1 to given_count"));
        }
        let of_code = &mut self.counter.codes[given.0][given.1 as usize];
        if *of_code != 0 && *of_code != given_count {
            return Err(("given_count", "differs from that of the same code in a row before"));
        }
        *of_code = given_count;
        if *pairs[cause as usize].entry(effect).or_insert(count) != count {
            return Err(("count", "differs from that of the same pair in a row before"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Encounter;

    fn vocabulary(codes: [&[&str]; 3]) -> Vocabulary {
        let [diagnosis, treatment, lab] = codes.map(|codes| {
            let code = |code: &&str| Code { code: (*code).into(), description: None, count: 1 };
            codes.iter().map(code).collect()
        });
        PerKind { diagnosis, treatment, lab, ..PerKind::default() }
    }

    fn prior() -> Prior {
        let mut counter = Counter::new(PerKind { diagnosis: 2, treatment: 2, lab: 1, ..PerKind::default() });
        for [diagnosis, treatment, lab] in
            [[vec![0], vec![0], vec![0]], [vec![0, 1], vec![1], vec![]], [vec![1], vec![0, 1], vec![0]]]
        {
            counter.add(&Encounter::new(PerKind { diagnosis, treatment, lab, ..PerKind::default() }));
        }
        counter.finish()
    }

    #[test]
    fn a_table_is_read_by_names() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("prior.parquet");
        let prior = prior();
        let own = vocabulary([&["a", "b"], &["x", "y"], &["l"]]);
        prior.write(&path, Overwrite::Refuse, &own).unwrap();
        let (same, unknown) = Prior::read(&path, &own).unwrap();
        assert_eq!(same.conditionals().collect::<Vec<_>>(), prior.conditionals().collect::<Vec<_>>());
        assert_eq!(unknown, 0);
        let pair = ((CodeKind::Diagnosis, 0), (CodeKind::Treatment, 0));
        assert_eq!(same.association(pair.0, pair.1), prior.association(pair.0, pair.1));
        assert_ne!(same.association(pair.0, pair.1), 0.0);
        // Other ids, a code that the table does not have, and one that only the table has.
        let (other, unknown) = Prior::read(&path, &vocabulary([&["new", "b", "a"], &["y"], &["l"]])).unwrap();
        assert_eq!(other.treatment_given_diagnosis(0, 2), prior.treatment_given_diagnosis(1, 0));
        assert_eq!(other.diagnosis_given_treatment(1, 0), prior.diagnosis_given_treatment(1, 1));
        assert_eq!(other.treatment_given_diagnosis(0, 0), 0.0);
        assert_eq!(unknown, 6, "both ways: a-x, b-x, x-l");
        let error = Prior::read(&path, &vocabulary([&["c"], &["z"], &[]])).unwrap_err().to_string();
        assert!(error.contains("none of its 12 rows has two codes of the dataset"), "{error}");
    }

    #[test]
    fn counts_that_contradict_each_other_are_refused() {
        use CodeKind::{Diagnosis, Lab, Treatment};
        let vocabulary = vocabulary([&["a"], &["x"], &["l"]]);
        let (a, x, l) = ((Diagnosis, 0), (Treatment, 0), (Lab, 0));
        type Row = ((CodeKind, u32), (CodeKind, u32), u32, u32);
        let set = |rows: &[Row]| -> Result<bool, (&str, &str)> {
            let mut reading = Reading::new(&vocabulary);
            rows.iter().try_for_each(|&(given, code, count, of)| reading.set(given, code, count, of))?;
            Ok(reading.is_symmetric())
        };
        assert_eq!(set(&[(a, x, 2, 3), (x, a, 2, 4)]), Ok(true));
        assert_eq!(set(&[(a, x, 2, 3), (x, a, 2, 4), (x, l, 1, 4)]), Ok(false));
        assert_eq!(set(&[(a, l, 2, 3)]).unwrap_err().0, "kind");
        assert_eq!(set(&[(a, x, 4, 3)]).unwrap_err().0, "count");
        assert_eq!(set(&[(a, x, 0, 3)]).unwrap_err().0, "count");
        assert_eq!(set(&[(a, x, 2, 3), (x, a, 1, 4)]).unwrap_err().0, "count");
        assert_eq!(set(&[(x, a, 2, 3), (x, l, 2, 4)]).unwrap_err().0, "given_count");
    }
}
