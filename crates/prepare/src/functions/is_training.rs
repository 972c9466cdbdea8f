//! `is_training(by, seed, part, subject_id, encounter_id)`: whether an encounter is in the training split, as
//! [`gct::split`] says. `by` and `seed` are constants, both as text; `part` is what the source recorded, or
//! null.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use gct::split::{By, Split, SplitPart};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct IsTraining(Signature);

impl Default for IsTraining {
    fn default() -> Self {
        IsTraining(Signature::any(5, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for IsTraining {
    fn name(&self) -> &'static str {
        "is_training"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let split = split(&arguments.args[0], &arguments.args[1])?;
        let texts = |index: usize| -> Result<ArrayRef> {
            Ok(cast(&arguments.args[index].to_array(arguments.number_rows)?, &DataType::Utf8View)?)
        };
        let (parts, subjects, encounters) = (texts(2)?, texts(3)?, texts(4)?);
        let ids = subjects.as_string_view().iter().zip(encounters.as_string_view());
        let is_training = parts.as_string_view().iter().zip(ids).map(|(part, (subject, encounter))| {
            let (subject, encounter) = (subject.unwrap_or_default(), encounter.unwrap_or_default());
            split.part_of(part.and_then(named), subject, encounter) == SplitPart::Train
        });
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(is_training.collect::<Vec<bool>>()))))
    }
}

/// A part by its name. Another name is refused when the dataset is read.
fn named(name: &str) -> Option<SplitPart> {
    SplitPart::ALL.into_iter().find(|part| part.name() == name)
}

fn split(by: &ColumnarValue, seed: &ColumnarValue) -> Result<Split> {
    let text = |value: &ColumnarValue| match value {
        ColumnarValue::Scalar(ScalarValue::Utf8(text) | ScalarValue::Utf8View(text)) => text.clone(),
        _ => None,
    };
    let by = text(by).and_then(|name| By::ALL.into_iter().find(|by| by.name() == name));
    let seed = text(seed).and_then(|seed| seed.parse().ok());
    match (by, seed) {
        (Some(by), Some(seed)) => Ok(Split::by_hash(seed, by)),
        _ => exec_err!("a split is by recorded, subject or encounter, and has a seed"),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn the_engine_splits_as_the_library_does() {
        let context = SessionContext::new();
        crate::functions::register(&context);
        for (by, seed) in [(By::Recorded, 0), (By::Subject, 7), (By::Encounter, u64::MAX)] {
            let split = Split::by_hash(seed, by);
            for (part, subject, encounter) in [
                ("NULL", "S7", "E1"),
                ("'train'", "S1", "E2"),
                ("'test'", "S7", "E7"),
                ("NULL", "", "\u{e9}"),
            ] {
                let by = by.name();
                let sql = format!("SELECT is_training('{by}', '{seed}', {part}, '{subject}', '{encounter}')");
                let found = context.sql(&sql).await.unwrap().collect().await.unwrap();
                let expected = split.part_of(named(part.trim_matches('\'')), subject, encounter);
                assert_eq!(found[0].column(0).as_boolean().value(0), expected == SplitPart::Train, "{sql}");
            }
        }
    }
}
