//! A prior in a file of its own: in how many training encounters a code occurs, and in how many together with
//! a code of the next kind. Counts, not probabilities, so that nothing is lost.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Float32Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use super::finder::Finder;
use super::{Cells, PairCounts, Prior};
use crate::dataset::{self, Table};
use crate::error::{Error, Result};
use crate::files::{FileEntry, Overwrite};
use crate::record::{CodeKind, PerKind};

/// `effect` is null where the count is that of the code itself. A strength is there only if it was learned.
fn schema(cells: Cells) -> Schema {
    let mut fields = vec![
        Field::new("kind", DataType::Utf8, false),
        Field::new("id", DataType::UInt32, false),
        Field::new("effect", DataType::UInt32, true),
        Field::new("count", DataType::UInt32, false),
    ];
    if cells == Cells::Explained {
        fields.push(Field::new("strength", DataType::Float32, true));
    }
    Schema::new(fields)
}

struct Row {
    kind: CodeKind,
    id: u32,
    effect: Option<u32>,
    count: u32,
    strength: Option<f32>,
}

impl Prior {
    /// Writes the counts.
    pub(crate) fn save(&self, path: &Path, cells: Cells) -> Result<FileEntry> {
        let rows: Vec<Row> = CodeKind::ALL.into_iter().flat_map(|kind| self.rows(kind)).collect();
        let mut columns: Vec<(_, ArrayRef)> = vec![
            ("kind", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.kind.name())))),
            ("id", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.id)))),
            ("effect", Arc::new(rows.iter().map(|row| row.effect).collect::<UInt32Array>())),
            ("count", Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.count)))),
        ];
        if cells == Cells::Explained {
            columns
                .push(("strength", Arc::new(rows.iter().map(|row| row.strength).collect::<Float32Array>())));
        }
        dataset::write_table(path, Overwrite::Refuse, columns)?;
        FileEntry::of(path)
    }

    fn rows(&self, kind: CodeKind) -> Vec<Row> {
        let codes = (0u32..).zip(&self.codes[kind]);
        let mut rows: Vec<Row> =
            codes.map(|(id, &count)| Row { kind, id, effect: None, count, strength: None }).collect();
        let pairs = match kind {
            CodeKind::Diagnosis => &self.diagnosis_treatment,
            CodeKind::Treatment => &self.treatment_lab,
            CodeKind::Context | CodeKind::Lab => return rows,
        };
        for id in 0..self.codes[kind].len() as u32 {
            let pair = |at: usize| Row {
                kind,
                id,
                effect: Some(pairs.effects[at]),
                count: pairs.counts[at],
                strength: pairs.strengths.get(at).copied(),
            };
            rows.extend(pairs.row(id).map(pair));
        }
        rows
    }

    /// Reads the counts, for vocabularies of these sizes and so many training encounters.
    pub(crate) fn load(
        path: &Path,
        vocabulary: PerKind<usize>,
        encounters: u64,
        cells: Cells,
    ) -> Result<Prior> {
        let wrong = |problem: &str| Error::Damaged { path: path.to_owned(), problem: problem.into() };
        let none = || PairCounts { starts: vec![0], ..PairCounts::default() };
        let mut prior = Prior {
            encounters,
            codes: PerKind::default(),
            diagnosis_treatment: none(),
            treatment_lab: none(),
            account: None,
        };
        let table = Table::open(path.to_owned(), &schema(cells), None)?;
        let mut first_row = 0;
        for batch in table.batches()? {
            let batch = batch?;
            let rows = rows(&batch, cells).map_err(|(row, column, problem)| Error::Row {
                path: path.to_owned(),
                row: first_row + row as u64 + 1,
                column: column.into(),
                problem: problem.into(),
            })?;
            for row in rows {
                prior.take(&row).ok_or_else(|| wrong("its rows are not in order"))?;
            }
            first_row += batch.num_rows() as u64;
        }
        for kind in CodeKind::ALL {
            if prior.codes[kind].len() != vocabulary[kind] {
                return Err(wrong("it is of another vocabulary"));
            }
        }
        for (pairs, causes, effects) in [
            (&mut prior.diagnosis_treatment, vocabulary.diagnosis, vocabulary.treatment),
            (&mut prior.treatment_lab, vocabulary.treatment, vocabulary.lab),
        ] {
            if pairs.effects.iter().any(|effect| *effect as usize >= effects) {
                return Err(wrong("a code is outside the vocabulary"));
            }
            if cells == Cells::Explained && pairs.strengths.len() != pairs.effects.len() {
                return Err(wrong("a pair has no strength"));
            }
            pairs.starts.resize(causes + 1, pairs.effects.len());
            pairs.finder = Finder::new(&pairs.starts, &pairs.effects);
        }
        Ok(prior)
    }

    /// Takes the next row; `None` if it cannot be the next one.
    fn take(&mut self, row: &Row) -> Option<()> {
        let Some(effect) = row.effect else {
            let codes = &mut self.codes[row.kind];
            (row.id as usize == codes.len()).then(|| codes.push(row.count))?;
            return Some(());
        };
        let pairs = match row.kind {
            CodeKind::Diagnosis => &mut self.diagnosis_treatment,
            CodeKind::Treatment => &mut self.treatment_lab,
            CodeKind::Context | CodeKind::Lab => return None,
        };
        let cause = row.id as usize;
        let known = cause < self.codes[row.kind].len() && cause + 1 >= pairs.starts.len();
        if !known {
            return None;
        }
        // The rows before it that have no pairs end where it begins.
        pairs.starts.resize(cause + 1, pairs.effects.len());
        let begin = pairs.starts[cause];
        if pairs.effects[begin..].last().is_some_and(|last| *last >= effect) {
            return None;
        }
        pairs.effects.push(effect);
        pairs.counts.push(row.count);
        pairs.strengths.extend(row.strength);
        Some(())
    }
}

/// The rows of a batch; of one that breaks a rule, its index, its column and the rule.
fn rows(batch: &RecordBatch, cells: Cells) -> Result<Vec<Row>, (usize, &'static str, &'static str)> {
    let column = |name: &str| batch.column_by_name(name).expect("the columns were checked");
    let numbers = |name| column(name).as_primitive::<UInt32Type>();
    let (kinds, ids, effects, counts) =
        (column("kind").as_string::<i32>(), numbers("id"), numbers("effect"), numbers("count"));
    let strengths = (cells == Cells::Explained).then(|| column("strength").as_primitive::<Float32Type>());
    for name in ["kind", "id", "count"] {
        if let Some(row) = (0..batch.num_rows()).find(|row| column(name).is_null(*row)) {
            return Err((row, name, "must not be null"));
        }
    }
    let row = |row: usize| {
        let kind = CodeKind::ALL.into_iter().find(|kind| kind.name() == kinds.value(row));
        let strength = strengths.filter(|strengths| strengths.is_valid(row));
        let strength = strength.map(|strengths| strengths.value(row));
        // Also false for NaN.
        if !strength.is_none_or(|strength| (0.0..=1.0).contains(&strength)) {
            return Err((row, "strength", "expected a number from 0 to 1"));
        }
        Ok(Row {
            kind: kind.ok_or((row, "kind", "expected context, diagnosis, treatment or lab"))?,
            id: ids.value(row),
            effect: effects.is_valid(row).then(|| effects.value(row)),
            count: counts.value(row),
            strength,
        })
    };
    (0..batch.num_rows()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prior::Counter;
    use crate::record::Encounter;

    #[test]
    fn what_is_read_is_what_was_written() {
        for cells in [Cells::Conditional, Cells::Explained] {
            round_trip(cells);
        }
    }

    fn round_trip(cells: Cells) {
        let mut counter = Counter::new(PerKind { diagnosis: 4, treatment: 3, lab: 2, ..PerKind::default() })
            .for_cells(cells);
        for codes in
            [[vec![0, 2], vec![1], vec![0, 1]], [vec![2], vec![0, 1], vec![]], [vec![3], vec![], vec![1]]]
        {
            let [diagnosis, treatment, lab] = codes;
            counter.add(&Encounter::new(PerKind { diagnosis, treatment, lab, ..PerKind::default() }));
        }
        let prior = counter.finish();
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("prior.parquet");
        prior.save(&path, cells).unwrap();
        let sizes = PerKind { diagnosis: 4, treatment: 3, lab: 2, ..PerKind::default() };
        assert_eq!(Prior::load(&path, sizes, 3, cells).unwrap(), prior);
        let other = PerKind { diagnosis: 5, ..sizes };
        assert!(Prior::load(&path, other, 3, cells).unwrap_err().to_string().contains("another vocabulary"));
        refuses_strengths(&path, prior, sizes, cells);
        std::fs::write(&path, "not a table").unwrap();
        assert!(matches!(Prior::load(&path, sizes, 3, cells), Err(Error::Damaged { .. })));
    }

    fn refuses_strengths(path: &Path, mut prior: Prior, sizes: PerKind<usize>, cells: Cells) {
        if cells != Cells::Explained {
            return;
        }
        for wrong in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.5, 1.5] {
            prior.diagnosis_treatment.strengths[1] = wrong;
            std::fs::remove_file(path).unwrap();
            prior.save(path, cells).unwrap();
            let error = Prior::load(path, sizes, 3, cells).unwrap_err();
            let expected = "row 6: column `strength`: expected a number from 0 to 1";
            assert!(error.to_string().ends_with(expected), "{wrong}: {error}");
        }
    }
}
