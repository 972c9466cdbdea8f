//! `known_ids(ids, new)`: the ids of a list under new numbers, ascending, each once. `new` has the new number
//! of each old one, or null for a code that is left out. A null list has no ids. `known_count(ids, new)`: how
//! many of the ids have a new number.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt32Array, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, UInt32Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownIds(Signature);

impl Default for KnownIds {
    fn default() -> Self {
        KnownIds(Signature::any(2, Volatility::Immutable))
    }
}

/// The list type of ids.
pub(super) fn ids_type() -> DataType {
    DataType::List(Arc::new(Field::new_list_field(DataType::UInt32, true)))
}

/// The call of the function on a list, with the new numbers as a constant of the plan.
pub(crate) fn known_ids(list: Expr, new: &[Option<u32>]) -> Expr {
    ScalarUDF::from(KnownIds::default()).call(vec![list, lit(id_list(new))])
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct KnownCount(Signature);

impl Default for KnownCount {
    fn default() -> Self {
        KnownCount(Signature::any(2, Volatility::Immutable))
    }
}

/// The call of the function that counts.
pub(crate) fn known_count(list: Expr, new: &[Option<u32>]) -> Expr {
    ScalarUDF::from(KnownCount::default()).call(vec![list, lit(id_list(new))])
}

impl ScalarUDFImpl for KnownCount {
    fn name(&self) -> &'static str {
        "known_count"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = arguments.args[0].to_array(arguments.number_rows)?;
        let new = constant(&arguments.args[1])?;
        let lists = lists.as_list::<i32>();
        let ids = lists.values().as_primitive::<UInt32Type>().values();
        let counts = (0..lists.len()).map(|row| {
            let range = lists.offsets()[row] as usize..lists.offsets()[row + 1] as usize;
            let known = |id: &&u32| new.is_valid(**id as usize);
            if lists.is_valid(row) { ids[range].iter().filter(known).count() as u64 } else { 0 }
        });
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from(counts.collect::<Vec<_>>()))))
    }
}

/// Ids as one value.
pub(super) fn id_list(ids: &[Option<u32>]) -> ScalarValue {
    let values: ArrayRef = Arc::new(UInt32Array::from(ids.to_vec()));
    let field = Arc::new(Field::new_list_field(DataType::UInt32, true));
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    ScalarValue::List(Arc::new(ListArray::new(field, offsets, values, None)))
}

/// The ids in a constant list.
pub(super) fn constant(value: &ColumnarValue) -> Result<UInt32Array> {
    let ColumnarValue::Scalar(ScalarValue::List(list)) = value else {
        return exec_err!("new ids must be a constant");
    };
    Ok(list.value(0).as_primitive::<UInt32Type>().clone())
}

impl ScalarUDFImpl for KnownIds {
    fn name(&self) -> &'static str {
        "known_ids"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(ids_type())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let lists = arguments.args[0].to_array(arguments.number_rows)?;
        let new = constant(&arguments.args[1])?;
        let lists = lists.as_list::<i32>();
        let ids = lists.values().as_primitive::<UInt32Type>().values();
        let mut kept: Vec<u32> = Vec::with_capacity(ids.len());
        let mut lengths = Vec::with_capacity(lists.len());
        for row in 0..lists.len() {
            let begin = kept.len();
            if lists.is_valid(row) {
                let range = lists.offsets()[row] as usize..lists.offsets()[row + 1] as usize;
                let known = ids[range].iter().map(|id| *id as usize).filter(|id| new.is_valid(*id));
                kept.extend(known.map(|id| new.value(id)));
                kept[begin..].sort_unstable();
                let mut end = begin;
                for index in begin..kept.len() {
                    if index == begin || kept[index] != kept[end - 1] {
                        kept[end] = kept[index];
                        end += 1;
                    }
                }
                kept.truncate(end);
            }
            lengths.push(kept.len() - begin);
        }
        let DataType::List(field) = ids_type() else { unreachable!("it is a list") };
        let list = ListArray::new(
            field,
            OffsetBuffer::from_lengths(lengths),
            Arc::new(UInt32Array::from(kept)),
            None,
        );
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}
