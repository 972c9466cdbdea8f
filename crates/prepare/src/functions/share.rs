//! `share(text, count)`: one of `count` shares, by a hash of the text; the first for null. What is too large
//! for memory is done share by share, and all rows of an encounter are in one.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, UInt32Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Share(Signature);

impl Default for Share {
    fn default() -> Self {
        Share(Signature::any(2, Volatility::Immutable))
    }
}

/// The hash of Fowler, Noll and Vo, with its high bits, which are mixed best, brought down.
fn hash(text: &str) -> u64 {
    let mixed = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed ^ (mixed >> 32)
}

impl ScalarUDFImpl for Share {
    fn name(&self) -> &'static str {
        "share"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt32)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let ColumnarValue::Scalar(ScalarValue::Int64(Some(count @ 1..))) = arguments.args[1] else {
            return exec_err!("the number of shares must be a constant");
        };
        let texts = cast(&arguments.args[0].to_array(arguments.number_rows)?, &DataType::Utf8View)?;
        let shares = texts.as_string_view().iter().map(|text| (text.map_or(0, hash) % count as u64) as u32);
        Ok(ColumnarValue::Array(Arc::new(shares.collect::<UInt32Array>())))
    }
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn shares_are_about_equal() {
        for count in [2, 7, 16] {
            let mut found = vec![0_u32; count];
            (0..10_000).for_each(|id: u32| found[hash(&id.to_string()) as usize % count] += 1);
            let expected = 10_000 / count as u32;
            assert!(found.iter().all(|share| share.abs_diff(expected) < expected / 4), "{found:?}");
        }
    }
}
