//! `code_count(ids)`: in how many lists each id occurs, given that none occurs twice in a list, as a list of
//! {id, count} ordered by id.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, UInt32Array, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, UInt32Type, UInt64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct CodeCount(Signature);

impl Default for CodeCount {
    fn default() -> Self {
        CodeCount(Signature::any(1, Volatility::Immutable))
    }
}

fn entry() -> Fields {
    Fields::from(vec![Field::new("id", DataType::UInt32, true), Field::new("count", DataType::UInt64, true)])
}

fn counts() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Struct(entry()), true))
}

impl AggregateUDFImpl for CodeCount {
    fn name(&self) -> &'static str {
        "code_count"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(counts()))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::<Counts>::default())
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format!("{}[counts]", arguments.name);
        Ok(vec![Arc::new(Field::new(name, DataType::List(counts()), true))])
    }
}

#[derive(Debug, Default)]
struct Counts(Vec<u64>);

impl Counts {
    fn add(&mut self, id: usize, count: u64) {
        if id >= self.0.len() {
            self.0.resize(id + 1, 0);
        }
        self.0[id] += count;
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let lists = values[0].as_list::<i32>();
        let ids = lists.values().as_primitive::<UInt32Type>().values();
        for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
            for id in &ids[lists.offsets()[row] as usize..lists.offsets()[row + 1] as usize] {
                self.add(*id as usize, 1);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
            let entries = lists.value(row);
            let entries = entries.as_struct();
            let ids = entries.column(0).as_primitive::<UInt32Type>().values();
            for (id, count) in ids.iter().zip(entries.column(1).as_primitive::<UInt64Type>().values()) {
                self.add(*id as usize, *count);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let all = std::mem::take(&mut self.0);
        let seen = || all.iter().enumerate().filter(|(_, count)| **count > 0);
        let values = StructArray::new(
            entry(),
            vec![
                Arc::new(seen().map(|(id, _)| id as u32).collect::<UInt32Array>()),
                Arc::new(seen().map(|(_, count)| *count).collect::<UInt64Array>()),
            ],
            None,
        );
        let list =
            ListArray::new(counts(), OffsetBuffer::from_lengths([values.len()]), Arc::new(values), None);
        Ok(ScalarValue::List(Arc::new(list)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.capacity() * size_of::<u64>()
    }
}
