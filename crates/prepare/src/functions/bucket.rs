//! `bucket(value, bounds)`: how many of the ascending bounds lie below the value; `bucket_text(value, bounds)`: the same in words.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int32Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucket(Signature);

impl Default for Bucket {
    fn default() -> Self {
        Bucket(Signature::any(2, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for Bucket {
    fn name(&self) -> &'static str {
        "bucket"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let buckets = each(&arguments, |value, bounds| place(value, bounds) as i32)?;
        Ok(ColumnarValue::Array(Arc::new(Int32Array::from(buckets))))
    }
}

/// The bucket in words: "up to 3", "over 3 to 5", "over 5".
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct BucketText(Signature);

impl Default for BucketText {
    fn default() -> Self {
        BucketText(Signature::any(2, Volatility::Immutable))
    }
}

impl ScalarUDFImpl for BucketText {
    fn name(&self) -> &'static str {
        "bucket_text"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let texts = each(&arguments, |value, bounds| match place(value, bounds) {
            _ if bounds.is_empty() => String::new(),
            0 => format!("up to {}", bounds[0]),
            place if place == bounds.len() => format!("over {}", bounds[place - 1]),
            place => format!("over {} to {}", bounds[place - 1], bounds[place]),
        })?;
        Ok(ColumnarValue::Array(Arc::new(StringArray::from(texts))))
    }
}

fn place(value: f64, bounds: &[f64]) -> usize {
    bounds.partition_point(|bound| *bound < value)
}

/// What a function says to each value and its bounds; null where either is.
fn each<T>(arguments: &ScalarFunctionArgs, say: impl Fn(f64, &[f64]) -> T) -> Result<Vec<Option<T>>> {
    let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
    let (values, bounds) = (arrays[0].as_primitive::<Float64Type>(), arrays[1].as_list::<i32>());
    let all = bounds.values().as_primitive::<Float64Type>().values();
    let said = (0..values.len()).map(|row| {
        let range = bounds.offsets()[row] as usize..bounds.offsets()[row + 1] as usize;
        (values.is_valid(row) && bounds.is_valid(row)).then(|| say(values.value(row), &all[range]))
    });
    Ok(said.collect())
}
