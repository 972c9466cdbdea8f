//! `clean(text)`: without spaces around it, and null if nothing is left; `identifier(text)`: clean, and `7.0`
//! as `7`; `lowered(text)`: in lower case. Most text needs none of that, and then the column is handed on as
//! it is: for millions of rows that takes a tenth of the time of `trim`, `nullif` and `lower`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use gct::coding::whole;

/// A change of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Change {
    Clean,
    Identifier,
    Lowered,
}

impl Change {
    /// Whether there is something to change.
    fn is_needed(self, text: &[u8]) -> bool {
        match self {
            Change::Clean => is_unclean(text),
            Change::Identifier => is_unclean(text) || text.ends_with(b".0"),
            Change::Lowered => text.iter().any(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()),
        }
    }

    fn of(self, text: &str) -> Option<String> {
        match self {
            Change::Clean => {
                let clean = text.trim_matches(' ');
                (!clean.is_empty()).then(|| clean.to_owned())
            }
            Change::Identifier => Change::Clean.of(text).map(|clean| whole(&clean).to_owned()),
            Change::Lowered => Some(text.to_lowercase()),
        }
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Changed {
    change: Change,
    signature: Signature,
}

impl Changed {
    pub(super) fn clean() -> Self {
        Changed { change: Change::Clean, signature: Signature::any(1, Volatility::Immutable) }
    }

    pub(super) fn identifier() -> Self {
        Changed { change: Change::Identifier, signature: Signature::any(1, Volatility::Immutable) }
    }

    pub(super) fn lowered() -> Self {
        Changed { change: Change::Lowered, signature: Signature::any(1, Volatility::Immutable) }
    }
}

fn is_unclean(text: &[u8]) -> bool {
    text.first().is_none_or(|first| *first == b' ') || text.last() == Some(&b' ')
}

impl ScalarUDFImpl for Changed {
    fn name(&self) -> &'static str {
        match self.change {
            Change::Clean => "clean",
            Change::Identifier => "identifier",
            Change::Lowered => "lowered",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = ColumnarValue::values_to_arrays(&arguments.args)?.swap_remove(0);
        let array = match array.data_type() {
            DataType::Utf8View => array,
            _ => cast(&array, &DataType::Utf8View)?,
        };
        let texts = array.as_string_view();
        if !texts.iter().flatten().any(|text| self.change.is_needed(text.as_bytes())) {
            return Ok(ColumnarValue::Array(array));
        }
        let changed: StringViewArray = texts.iter().map(|text| self.change.of(text?)).collect();
        Ok(ColumnarValue::Array(Arc::new(changed) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::StringArray;
    use datafusion::arrow::datatypes::Field;

    fn changed(function: &Changed, texts: &[Option<&str>]) -> Vec<Option<String>> {
        let array: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let field = Arc::new(Field::new("text", DataType::Utf8, true));
        let arguments = ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(array)],
            arg_fields: vec![field.clone()],
            number_rows: texts.len(),
            return_field: field,
            config_options: Arc::default(),
        };
        let ColumnarValue::Array(array) = function.invoke_with_args(arguments).unwrap() else { panic!() };
        array.as_string_view().iter().map(|text| text.map(str::to_owned)).collect()
    }

    fn expected(texts: &[Option<&str>]) -> Vec<Option<String>> {
        texts.iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn spaces_around_are_gone_and_nothing_is_null() {
        let clean = Changed::clean();
        let got = changed(&clean, &[Some(" a b "), Some(""), Some("   "), None, Some("001.0"), Some("x\t")]);
        assert_eq!(got, expected(&[Some("a b"), None, None, None, Some("001.0"), Some("x\t")]));
        let untouched = [Some("a"), None, Some("b c")];
        assert_eq!(changed(&clean, &untouched), expected(&untouched));
    }

    #[test]
    fn an_identifier_has_no_empty_fraction() {
        let texts = [Some("141765.0"), Some(" -7.0"), Some("1.2.0"), Some(".0"), Some("007"), Some(""), None];
        let whole = [Some("141765"), Some("-7"), Some("1.2.0"), Some(".0"), Some("007"), None, None];
        assert_eq!(changed(&Changed::identifier(), &texts), expected(&whole));
    }

    #[test]
    fn letters_are_small() {
        let got = changed(&Changed::lowered(), &[Some("LAB"), Some("lab"), Some("ÄRZTE"), None]);
        assert_eq!(got, expected(&[Some("lab"), Some("lab"), Some("ärzte"), None]));
    }
}
