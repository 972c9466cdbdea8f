//! `part_of(subject_id, parts)`: the part of a dataset that a subject is in, as [`gct::dataset::part_of`]
//! says; null for null. `parts` is a constant.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, UInt32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

/// The part of a subject among so many.
pub(crate) fn part_of(subject: Expr, parts: usize) -> Expr {
    ScalarUDF::from(PartOf::default()).call(vec![subject, lit(parts as i64)])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PartOf(Signature);

impl Default for PartOf {
    fn default() -> Self {
        PartOf(Signature::any(2, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for PartOf {
    fn name(&self) -> &'static str {
        "part_of"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ColumnarValue::Scalar(ScalarValue::Int64(Some(parts @ 1..))) = arguments.args[1] else {
            return exec_err!("the number of parts must be a constant");
        };
        let subjects = cast(&arguments.args[0].to_array(arguments.number_rows)?, &DataType::Utf8View)?;
        let part = |subject: &str| gct::dataset::part_of(subject, parts as usize) as u32;
        let found = subjects.as_string_view().iter().map(|subject| subject.map(part));
        Ok(ColumnarValue::Array(Arc::new(found.collect::<UInt32Array>())))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::UInt32Type;
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn the_engine_puts_subjects_where_the_library_does() {
        let context = SessionContext::new();
        crate::functions::register(&context);
        for (subject, parts) in [("S7", 4), ("S7", 1), ("S7", 64), ("", 3), ("\u{e9}", 5)] {
            let sql = format!("SELECT part_of('{subject}', {parts})");
            let found = context.sql(&sql).await.unwrap().collect().await.unwrap();
            let found = found[0].column(0).as_primitive::<UInt32Type>().value(0) as usize;
            assert_eq!(found, gct::dataset::part_of(subject, parts), "{sql}");
        }
    }
}
