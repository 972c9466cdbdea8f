//! Weights of a model that has learned, taken by another one to begin with.

use super::Model;

/// The table with a row for every code.
const EMBEDDING: &str = "embedding";

impl Model<f32> {
    /// Takes weights of another model of the same width: of the embedding each row whose row in the other one
    /// is known, and every other parameter that has the same name and shape there and may be taken. The rest
    /// stays as it is; the names of parameters that stay are returned.
    pub(crate) fn take(
        &mut self,
        other: &Model<f32>,
        row_of: impl Fn(u32) -> Option<u32>,
        may_take: impl Fn(&str) -> bool,
    ) -> Vec<String> {
        let (mut own, mut stay) = (Vec::new(), Vec::new());
        for named in self.parameters.named().iter().filter(|named| named.name != EMBEDDING) {
            let same = |theirs: &&crate::parameters::Named| {
                theirs.name == named.name && theirs.shape == named.shape && may_take(&named.name)
            };
            match other.parameters.named().iter().find(same) {
                Some(theirs) => own.push((named.start, theirs.start, named.len())),
                None => stay.push(named.name.clone()),
            }
        }
        let (width, rows) = (self.width(), 0..self.rows.count() as u32);
        let (to, from) = (self.network.embedding.start, other.network.embedding.start);
        let row = |row: u32| Some((to + row as usize * width, from + row_of(row)? as usize * width, width));
        own.extend(rows.filter_map(row));
        let theirs = other.weights.values();
        self.weights.update(|values| {
            for (to, from, len) in own {
                values[to..to + len].copy_from_slice(&theirs[from..from + len]);
            }
        });
        stay
    }
}
