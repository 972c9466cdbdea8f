//! `pair_count(causes, effects)`: in how many encounters each pair of codes occurs, as a list of {cause,
//! effect, count} ordered by cause and effect.
//!
//! A join of the codes with themselves makes a row per pair and encounter, some hundreds each; this makes
//! none.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StructArray, UInt32Array, UInt64Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields, UInt32Type, UInt64Type};
use datafusion::common::{HashMap, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PairCount(Signature);

impl Default for PairCount {
    fn default() -> Self {
        PairCount(Signature::any(2, Volatility::Immutable))
    }
}

fn pair() -> Fields {
    Fields::from(vec![
        Field::new("cause", DataType::UInt32, true),
        Field::new("effect", DataType::UInt32, true),
        Field::new("count", DataType::UInt64, true),
    ])
}

fn pairs() -> FieldRef {
    Arc::new(Field::new_list_field(DataType::Struct(pair()), true))
}

impl AggregateUDFImpl for PairCount {
    fn name(&self) -> &'static str {
        "pair_count"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(pairs()))
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::<PairTable>::default())
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let name = format!("{}[pairs]", arguments.name);
        Ok(vec![Arc::new(Field::new(name, DataType::List(pairs()), true))])
    }
}

/// A square table while ids are small, which is most of the time; a hash map for pairs beyond it.
#[derive(Debug, Default)]
struct PairTable {
    side: usize,
    table: Vec<u32>,
    beyond: HashMap<(u32, u32), u32>,
}

/// The largest side of the table: 256 MiB of counts.
const LARGEST: usize = 8192;

impl PairTable {
    fn add(&mut self, cause: u32, effect: u32, count: u32) {
        let larger = cause.max(effect) as usize;
        if larger >= self.side {
            if larger >= LARGEST {
                *self.beyond.entry((cause, effect)).or_default() += count;
                return;
            }
            self.grow(larger);
        }
        self.table[cause as usize * self.side + effect as usize] += count;
    }

    fn grow(&mut self, id: usize) {
        let side = (id + 1).next_power_of_two().max(256);
        let mut table = vec![0; side * side];
        for cause in 0..self.side {
            let row = &self.table[cause * self.side..][..self.side];
            table[cause * side..][..self.side].copy_from_slice(row);
        }
        (self.side, self.table) = (side, table);
    }
}

impl Accumulator for PairTable {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let (causes, effects) = (values[0].as_list::<i32>(), values[1].as_list::<i32>());
        let ids = |list: &ListArray| list.values().as_primitive::<UInt32Type>().clone();
        let (cause_ids, effect_ids) = (ids(causes), ids(effects));
        for row in (0..causes.len()).filter(|row| causes.is_valid(*row) && effects.is_valid(*row)) {
            let range = |list: &ListArray| list.offsets()[row] as usize..list.offsets()[row + 1] as usize;
            let effects = &effect_ids.values()[range(effects)];
            for cause in &cause_ids.values()[range(causes)] {
                for effect in effects {
                    self.add(*cause, *effect, 1);
                }
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let lists = states[0].as_list::<i32>();
        for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
            let pairs = lists.value(row);
            let pairs = pairs.as_struct();
            let [causes, effects] =
                [0, 1].map(|column| pairs.column(column).as_primitive::<UInt32Type>().clone());
            let counts = pairs.column(2).as_primitive::<UInt64Type>();
            for pair in 0..pairs.len() {
                self.add(causes.value(pair), effects.value(pair), counts.value(pair) as u32);
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut beyond: Vec<((u32, u32), u32)> = std::mem::take(&mut self.beyond).into_iter().collect();
        beyond.sort_unstable();
        let side = self.side;
        let inside = self.table.iter().enumerate().filter(|(_, count)| **count > 0);
        let inside = inside.map(|(index, count)| (((index / side) as u32, (index % side) as u32), *count));
        let mut all: Vec<((u32, u32), u32)> = inside.chain(beyond).collect();
        // Two ascending runs: the sort has little to do.
        all.sort();
        let values = StructArray::new(
            pair(),
            vec![
                Arc::new(all.iter().map(|(pair, _)| pair.0).collect::<UInt32Array>()),
                Arc::new(all.iter().map(|(pair, _)| pair.1).collect::<UInt32Array>()),
                Arc::new(all.iter().map(|(_, count)| u64::from(*count)).collect::<UInt64Array>()),
            ],
            None,
        );
        let list = ListArray::new(pairs(), OffsetBuffer::from_lengths([all.len()]), Arc::new(values), None);
        Ok(ScalarValue::List(Arc::new(list)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.table.capacity() * size_of::<u32>()
            + self.beyond.capacity() * (size_of::<(u32, u32)>() + size_of::<u32>() + 1)
    }
}
