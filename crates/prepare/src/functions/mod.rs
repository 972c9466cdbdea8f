//! Functions that the queries use beside those of the engine. They are registered by name and carry no state, so that a plan
//! with them can be sent to another machine.

mod bucket;
mod code_count;
mod edges;
mod known_ids;
mod pair_count;
mod text;

use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};
use datafusion::prelude::SessionContext;

pub(crate) use edges::true_edges;
pub(crate) use known_ids::known_ids;

/// Makes the functions known to a session.
pub fn register(context: &SessionContext) {
    context.register_udf(ScalarUDF::from(bucket::Bucket::default()));
    context.register_udf(ScalarUDF::from(bucket::BucketText::default()));
    context.register_udf(ScalarUDF::from(known_ids::KnownIds::default()));
    context.register_udf(ScalarUDF::from(edges::TrueEdges::default()));
    context.register_udf(ScalarUDF::from(text::Changed::clean()));
    context.register_udf(ScalarUDF::from(text::Changed::lowered()));
    context.register_udaf(AggregateUDF::from(code_count::CodeCount::default()));
    context.register_udaf(AggregateUDF::from(pair_count::PairCount::default()));
}

/// In how many lists each id occurs.
pub(crate) fn code_count(lists: Expr) -> Expr {
    AggregateUDF::from(code_count::CodeCount::default()).call(vec![lists])
}
