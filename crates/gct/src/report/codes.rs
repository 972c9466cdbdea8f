//! The codes of a report, and which of them are told.

use serde::Serialize;

use super::{CodeLink, cells};
use crate::record::CodeKind;
use crate::run::Run;

/// Codes that the run knows: diagnoses, treatments, labs.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Codes {
    kind: Vec<u8>,
    code: Vec<String>,
    description: Vec<Option<String>>,
    count: Vec<Option<u64>>,
}

/// The codes that are told: all, or those that enough encounters have.
pub(super) struct Told {
    min_cell: u64,
    pub(super) codes: Vec<(CodeKind, u32)>,
    /// How many encounters have each of them.
    pub(super) counts: Vec<u64>,
    /// The index of each of all codes among them.
    indices: Vec<Option<usize>>,
}

impl Told {
    pub(super) fn new(run: &Run, min_cell: u64) -> Self {
        let (mut codes, mut counts, mut indices) = (Vec::new(), Vec::new(), Vec::new());
        for kind in CodeKind::ALL {
            for (id, code) in (0..).zip(&run.vocabulary()[kind]) {
                let is_told = code.count >= min_cell;
                indices.push(is_told.then_some(codes.len()));
                codes.extend(is_told.then_some((kind, id)));
                counts.extend(is_told.then_some(code.count));
            }
        }
        Told { min_cell, codes, counts, indices }
    }

    pub(super) fn names(&self, run: &Run) -> Codes {
        let mut names = Codes::default();
        let encounters = run.manifest().dataset.encounters;
        for ((kind, id), count) in self.codes.iter().zip(&self.counts) {
            let code = &run.vocabulary()[*kind][*id as usize];
            names.kind.push(number_on_page(*kind));
            names.code.push(code.code.clone());
            names.description.push(code.description.clone());
            names.count.push(cells::is_told(*count, encounters, self.min_cell).then_some(*count));
        }
        names
    }

    /// Links between codes that are told; not one that tells, beside the counts of its codes, that few
    /// encounters lack it.
    pub(super) fn links(&self, links: Vec<CodeLink>, asked: u64) -> Vec<CodeLink> {
        let link = |link: CodeLink| {
            let (from, to) = (self.indices[link.from]?, self.indices[link.to]?);
            let wholes = [self.counts[from], self.counts[to], asked];
            let is_told = |all: &u64| cells::is_told(link.encounters, *all, self.min_cell);
            wholes.iter().all(is_told).then_some(CodeLink { from, to, ..link })
        };
        links.into_iter().filter_map(link).collect()
    }
}

/// The number of a kind of code on the page: its index in `KINDS` of `page/data.js`, where the visit is 0.
fn number_on_page(kind: CodeKind) -> u8 {
    match kind {
        CodeKind::Diagnosis => 1,
        CodeKind::Treatment => 2,
        CodeKind::Lab => 3,
        CodeKind::Context => 4,
    }
}
