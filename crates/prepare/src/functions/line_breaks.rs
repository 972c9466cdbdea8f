//! `has_line_break(text, ...)`: whether any of these texts has a line break. It looks at all text of a batch
//! at once, since hardly any has one.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct HasLineBreak(Signature);

impl Default for HasLineBreak {
    fn default() -> Self {
        HasLineBreak(Signature::variadic_any(Volatility::Immutable))
    }
}

/// All text of a column in one piece.
fn all_text(column: &StringArray) -> &[u8] {
    let (offsets, bytes) = (column.offsets(), column.value_data());
    &bytes[offsets[0] as usize..offsets[column.len()] as usize]
}

impl ScalarUDFImpl for HasLineBreak {
    fn name(&self) -> &'static str {
        "has_line_break"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut found = vec![false; arguments.number_rows];
        for argument in &arguments.args {
            let column = cast(&argument.to_array(arguments.number_rows)?, &DataType::Utf8)?;
            let column = column.as_string::<i32>();
            if all_text(column).contains(&b'\n') {
                let texts = column.iter().map(|text| text.is_some_and(|text| text.contains('\n')));
                found.iter_mut().zip(texts).for_each(|(found, here)| *found |= here);
            }
        }
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::from(found)) as ArrayRef))
    }
}
