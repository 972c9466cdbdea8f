//! Where an effect is in the row of its cause, without a search.
//!
//! A row that has many of the effects gets a bit for each one: whether it is there, and by counting the bits
//! before it, where. A row that has few of them is searched. So bits take less memory than what they find.

/// Effects per word of bits.
const WORD: usize = 64;

/// A row has bits if it has at least one effect per word, in the mean.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Finder {
    /// The words of row `c` are `starts[c]..starts[c + 1]`; none if it has no bits.
    starts: Vec<usize>,
    words: Vec<Word>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Word {
    bits: u64,
    /// How many bits the words before it in its row have.
    before: u32,
}

impl Finder {
    /// For rows of ascending effects.
    pub(super) fn new(starts: &[usize], effects: &[u32]) -> Self {
        let mut finder = Finder { starts: vec![0], words: Vec::new() };
        for ends in starts.windows(2) {
            finder.add(&effects[ends[0]..ends[1]]);
            finder.starts.push(finder.words.len());
        }
        finder
    }

    fn add(&mut self, row: &[u32]) {
        let words = row.last().map_or(0, |last| *last as usize / WORD + 1);
        if row.len() < words {
            return;
        }
        let first = self.words.len();
        self.words.resize(first + words, Word::default());
        for effect in row {
            self.words[first + *effect as usize / WORD].bits |= 1 << (*effect as usize % WORD);
        }
        let mut before = 0;
        for word in &mut self.words[first..] {
            word.before = before;
            before += word.bits.count_ones();
        }
    }

    /// The position of an effect in the row of a cause, which is given too.
    pub(super) fn find(&self, cause: u32, effect: u32, row: &[u32]) -> Option<usize> {
        let words = &self.words[self.starts[cause as usize]..self.starts[cause as usize + 1]];
        if words.is_empty() {
            return row.binary_search(&effect).ok();
        }
        let word = words.get(effect as usize / WORD)?;
        let bit = 1 << (effect as usize % WORD);
        let is_there = word.bits & bit != 0;
        is_there.then(|| word.before as usize + (word.bits & (bit - 1)).count_ones() as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn effects_are_found_where_they_are(
            rows in prop::collection::vec(prop_oneof![
                prop::collection::btree_set(0u32..200, 0..200),
                prop::collection::btree_set(0u32..9000, 0..9),
            ], 1..5),
        ) {
            let (mut starts, mut effects) = (vec![0], Vec::new());
            for row in &rows {
                effects.extend(row.iter().copied());
                starts.push(effects.len());
            }
            let finder = Finder::new(&starts, &effects);
            for (cause, row) in (0..).zip(&rows) {
                let sorted: Vec<u32> = row.iter().copied().collect();
                let others: BTreeSet<u32> = rows.iter().flatten().copied().chain(0..300).collect();
                for effect in others {
                    let expected = sorted.binary_search(&effect).ok();
                    prop_assert_eq!(finder.find(cause, effect, &sorted), expected, "{} {}", cause, effect);
                }
            }
        }
    }

    #[test]
    fn a_row_of_few_effects_has_no_bits() {
        let finder = Finder::new(&[0, 2, 4], &[0, 6400, 0, 64]);
        assert_eq!(finder.starts, [0, 0, 2]);
    }
}
