//! Pictures of what a model looks at and of how it learns: plain data in, the text of an SVG file out.
//!
//! A picture is one file that fetches nothing and runs nothing, and the same data give the same text. Colours
//! are from the palette of Okabe and Ito, which readers with any kind of colour vision can tell apart. Labels
//! that are too long are shortened; the whole label shows when the mouse rests on it.

mod axis;
mod bars;
mod curves;
mod graph;
mod links;
mod page;
mod svg;

pub use bars::bars;
pub use curves::{Line, Series, curves};
pub use graph::{Graph, graph};

use crate::graph::NodeKind;
use crate::record::CodeKind;

/// What stands over or beside the nodes of a kind.
fn heading(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Visit => "visit",
        NodeKind::Code(CodeKind::Context) => "context",
        NodeKind::Code(CodeKind::Diagnosis) => "diagnoses",
        NodeKind::Code(CodeKind::Treatment) => "treatments",
        NodeKind::Code(CodeKind::Lab) => "labs",
    }
}
