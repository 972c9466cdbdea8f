//! `true_edges(links, diagnoses, treatments, new_diagnoses, new_treatments)`: the links between codes that
//! the encounter has, under their new numbers, ascending, each once. A null list of links is null: nothing is
//! known. `true_links` has the same as often as they are recorded.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, ListArray, StructArray, UInt32Array};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::datatypes::{DataType, Field, Fields, UInt32Type};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};

use super::known_ids::{constant, id_list};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct TrueEdges {
    each_once: bool,
    signature: Signature,
}

impl TrueEdges {
    pub(super) fn edges() -> Self {
        TrueEdges { each_once: true, signature: Signature::any(5, Volatility::Immutable) }
    }

    pub(super) fn links() -> Self {
        TrueEdges { each_once: false, signature: Signature::any(5, Volatility::Immutable) }
    }

    /// The call of the function, with the new numbers as constants of the plan.
    fn call(self, lists: [Expr; 3], new: [&[Option<u32>]; 2]) -> Expr {
        let new = new.map(|new| lit(id_list(new)));
        ScalarUDF::from(self).call(lists.into_iter().chain(new).collect())
    }
}

/// The edges between codes that the encounter has.
pub(crate) fn true_edges(lists: [Expr; 3], new: [&[Option<u32>]; 2]) -> Expr {
    TrueEdges::edges().call(lists, new)
}

/// The links between codes that the encounter has, as often as they are recorded.
pub(crate) fn true_links(lists: [Expr; 3], new: [&[Option<u32>]; 2]) -> Expr {
    TrueEdges::links().call(lists, new)
}

fn pair() -> Fields {
    Fields::from(vec![
        Field::new("diagnosis", DataType::UInt32, false),
        Field::new("treatment", DataType::UInt32, false),
    ])
}

impl ScalarUDFImpl for TrueEdges {
    fn name(&self) -> &'static str {
        if self.each_once { "true_edges" } else { "true_links" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Struct(pair()), true))))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let links = arguments.args[0].to_array(rows)?;
        let (causes, effects) = (arguments.args[1].to_array(rows)?, arguments.args[2].to_array(rows)?);
        let (new_causes, new_effects) = (constant(&arguments.args[3])?, constant(&arguments.args[4])?);
        let links = links.as_list::<i32>();
        let ends = links.values().as_struct();
        let [from, to] = [0, 1].map(|column| ends.column(column).as_primitive::<UInt32Type>().clone());
        let (mut diagnoses, mut treatments) = (vec![], vec![]);
        let mut lengths = Vec::with_capacity(rows);
        let mut edges: Vec<(u32, u32)> = vec![];
        for row in 0..rows {
            edges.clear();
            if links.is_valid(row) {
                let ([causes, effects], range) =
                    ([&causes, &effects].map(|lists| lists.as_list::<i32>().value(row)), offsets(links, row));
                let has = |ids: &dyn Array, id: u32| {
                    ids.as_primitive::<UInt32Type>().values().binary_search(&id).is_ok()
                };
                edges.extend(range.filter_map(|link| {
                    let new = |ids: &UInt32Array, id: usize| ids.is_valid(id).then(|| ids.value(id));
                    let cause = new(&new_causes, from.value(link) as usize)?;
                    let effect = new(&new_effects, to.value(link) as usize)?;
                    (has(&causes, cause) && has(&effects, effect)).then_some((cause, effect))
                }));
                edges.sort_unstable();
                if self.each_once {
                    edges.dedup();
                }
            }
            lengths.push(edges.len());
            diagnoses.extend(edges.iter().map(|edge| edge.0));
            treatments.extend(edges.iter().map(|edge| edge.1));
        }
        let pairs = StructArray::new(
            pair(),
            vec![Arc::new(UInt32Array::from(diagnoses)), Arc::new(UInt32Array::from(treatments))],
            None,
        );
        let known: NullBuffer = (0..rows).map(|row| links.is_valid(row)).collect::<Vec<_>>().into();
        let DataType::List(field) = self.return_type(&[])? else { unreachable!("it is a list") };
        let list = ListArray::new(field, OffsetBuffer::from_lengths(lengths), Arc::new(pairs), Some(known));
        Ok(ColumnarValue::Array(Arc::new(list)))
    }
}

fn offsets(list: &ListArray, row: usize) -> std::ops::Range<usize> {
    list.offsets()[row] as usize..list.offsets()[row + 1] as usize
}
