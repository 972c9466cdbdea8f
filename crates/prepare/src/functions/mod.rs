//! Functions that the queries use beside those of the engine. They are registered by name and carry no state,
//! so that a plan with them can be sent to another machine.

mod band;
mod bucketed;
mod code_count;
mod edges;
mod is_training;
mod known_ids;
mod line_breaks;
mod moment;
mod pair_count;
mod part_of;
mod share;
mod text;

use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};
use datafusion::prelude::SessionContext;

pub(crate) use bucketed::bucketed;
pub(crate) use edges::{true_edges, true_links};
pub(crate) use known_ids::{known_count, known_ids};
pub(crate) use moment::moment;
pub(crate) use part_of::part_of;

/// Makes the functions known to a session.
pub fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(bucketed::Bucketed::default()));
    context.register_udf(ScalarUDF::from(known_ids::KnownIds::default()));
    context.register_udf(ScalarUDF::from(known_ids::KnownCount::default()));
    context.register_udf(ScalarUDF::from(edges::TrueEdges::edges()));
    context.register_udf(ScalarUDF::from(edges::TrueEdges::links()));
    context.register_udf(ScalarUDF::from(text::Changed::clean()));
    context.register_udf(ScalarUDF::from(text::Changed::identifier()));
    context.register_udf(ScalarUDF::from(text::Changed::lowered()));
    context.register_udf(ScalarUDF::from(is_training::IsTraining::default()));
    context.register_udf(ScalarUDF::from(part_of::PartOf::default()));
    context.register_udf(ScalarUDF::from(share::Share::default()));
    context.register_udf(ScalarUDF::from(moment::Moment::of_time()));
    context.register_udf(ScalarUDF::from(moment::Moment::of_day()));
    context.register_udf(ScalarUDF::from(band::Band::of_age()));
    context.register_udf(ScalarUDF::from(band::Band::of_visits()));
    context.register_udf(ScalarUDF::from(band::Band::of_days()));
    context.register_udf(ScalarUDF::from(band::YearsBetween::default()));
    context.register_udf(ScalarUDF::from(line_breaks::HasLineBreak::default()));
    context.register_udaf(AggregateUDF::from(code_count::CodeCount::default()));
    context.register_udaf(AggregateUDF::from(pair_count::PairCount::default()));
}

/// In how many lists each id occurs.
pub(crate) fn code_count(lists: Expr) -> Expr {
    AggregateUDF::from(code_count::CodeCount::default()).call(vec![lists])
}
