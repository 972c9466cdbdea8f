//! `bucketed(labs, starts, bounds, numbers)`: the codes of lab events, given as a list of {id, value}. The
//! bounds of the lab with number `i` are `bounds[starts[i]..starts[i + 1]]`, ascending. Its codes follow each
//! other in `numbers`: first that of an event without a value, then one per bucket, of which there is one
//! more than there are bounds.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, ListArray, UInt32Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, UInt32Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use gct::coding::bucket;

use super::known_ids::{constant, id_list, ids_type};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucketed(Signature);

impl Default for Bucketed {
    fn default() -> Self {
        Bucketed(Signature::any(4, Volatility::Immutable))
    }
}

/// The call of the function, with bounds and numbers as constants of the plan.
pub(crate) fn bucketed(labs: Expr, starts: &[u32], bounds: &[f64], numbers: &[u32]) -> Expr {
    let ids = |ids: &[u32]| lit(id_list(&ids.iter().copied().map(Some).collect::<Vec<_>>()));
    let values: ArrayRef = Arc::new(Float64Array::from(bounds.to_vec()));
    let field = Arc::new(Field::new_list_field(DataType::Float64, true));
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let bounds = lit(ScalarValue::List(Arc::new(ListArray::new(field, offsets, values, None))));
    ScalarUDF::from(Bucketed::default()).call(vec![labs, ids(starts), bounds, ids(numbers)])
}

impl ScalarUDFImpl for Bucketed {
    fn name(&self) -> &'static str {
        "bucketed"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(ids_type())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let labs = arguments.args[0].to_array(arguments.number_rows)?;
        let (starts, numbers) = (constant(&arguments.args[1])?, constant(&arguments.args[3])?);
        let ColumnarValue::Scalar(ScalarValue::List(bounds)) = &arguments.args[2] else {
            return exec_err!("bounds must be a constant");
        };
        let bounds = bounds.value(0);
        let bounds = bounds.as_primitive::<Float64Type>().values();
        let labs = labs.as_list::<i32>();
        let events = labs.values().as_struct();
        let (ids, values) =
            (events.column(0).as_primitive::<UInt32Type>(), events.column(1).as_primitive::<Float64Type>());
        let codes = (0..events.len()).map(|event| {
            let lab = ids.value(event) as usize;
            let (start, end) = (starts.value(lab) as usize, starts.value(lab + 1) as usize);
            let bucket_index =
                values.is_valid(event).then(|| bucket(values.value(event), &bounds[start..end]));
            // Every lab before this one has two codes more than bounds.
            numbers.value(start + 2 * lab + bucket_index.map_or(0, |bucket_index| bucket_index + 1))
        });
        let codes: UInt32Array = codes.collect::<Vec<_>>().into();
        let DataType::List(field) = ids_type() else { unreachable!("it is a list") };
        let list = ListArray::new(field, labs.offsets().clone(), Arc::new(codes), labs.nulls().cloned());
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}
