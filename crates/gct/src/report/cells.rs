//! Small cells: counts of encounters by which someone could be recognised, and counts that give such a one
//! by subtraction.

/// Whether so many encounters are too few to be told.
pub(crate) fn is_small(count: u64, min_cell: u64) -> bool {
    (1..min_cell).contains(&count)
}

/// Whether so many of all are told: not if they are few, or the others are.
pub(crate) fn is_told(some: u64, all: u64, min_cell: u64) -> bool {
    ![some, all.saturating_sub(some)].iter().any(|cell| is_small(*cell, min_cell))
}

/// How many encounters there are on a page, as far as that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) encounters: Option<u64>,
    pub(super) training: Option<u64>,
    pub(super) asked: Option<u64>,
    pub(super) left_out: Option<u64>,
}

/// How training encounters and those that were asked about, or left out, share a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// None is both.
    Apart,
    /// Those that were asked about, or left out, are the training encounters.
    Same,
    /// Some may be both.
    Some,
}

impl Numbers {
    /// What is told of these counts, where those that were asked about and those left out are all of a part
    /// of the dataset.
    pub(super) fn told(
        [encounters, training, asked, left_out]: [u64; 4],
        overlap: Overlap,
        min_cell: u64,
    ) -> Self {
        let part = |count: u64| (!is_small(count, min_cell)).then_some(count);
        let sum = |parts: &[Option<u64>]| parts.iter().flatten().sum::<u64>();
        // Beside what is told of its parts a whole tells how many are left.
        let whole = |all: u64, parts: u64| part(all).filter(|all| is_told(parts, *all, min_cell));
        let (asked, left_out) = (part(asked), part(left_out));
        let training = match overlap {
            Overlap::Same => whole(training, sum(&[asked, left_out])),
            Overlap::Apart | Overlap::Some => part(training),
        };
        let encounters = match overlap {
            Overlap::Apart => whole(encounters, sum(&[training, asked, left_out])),
            Overlap::Same | Overlap::Some => whole(encounters, sum(&[asked, left_out]))
                .filter(|all| is_told(sum(&[training]), *all, min_cell)),
        };
        Numbers { encounters, training, asked, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(counts: [u64; 4], overlap: Overlap) -> [Option<u64>; 4] {
        let Numbers { encounters, training, asked, left_out } = Numbers::told(counts, overlap, 11);
        [encounters, training, asked, left_out]
    }

    #[test]
    fn few_are_not_told() {
        assert_eq!(told([100, 80, 10, 0], Overlap::Apart), [Some(100), Some(80), None, Some(0)]);
        assert_eq!(told([9, 7, 1, 0], Overlap::Apart), [None, None, None, Some(0)]);
        assert_eq!(told([100, 74, 11, 2], Overlap::Apart), [Some(100), Some(74), Some(11), None]);
        let all = [100, 80, 10, 3];
        assert_eq!(Numbers::told(all, Overlap::Apart, 0).left_out, Some(3), "unless all is told");
    }

    #[test]
    fn nor_what_gives_them_by_subtraction() {
        // 100 - 80 - 12 are the 8 of the other part; 100 - 97 and 100 - 91 are the 3 and 9 that were left
        // out.
        assert_eq!(told([100, 80, 12, 0], Overlap::Apart), [None, Some(80), Some(12), Some(0)]);
        assert_eq!(told([100, 80, 97, 3], Overlap::Some), [None, Some(80), Some(97), None]);
        assert_eq!(told([150, 100, 91, 9], Overlap::Same), [Some(150), None, Some(91), None]);
        // All were asked about, and so the 5 that are not of the training split.
        assert_eq!(told([100, 95, 100, 0], Overlap::Some), [None, Some(95), Some(100), Some(0)]);
        assert_eq!(told([100, 80, 100, 0], Overlap::Some), [Some(100), Some(80), Some(100), Some(0)]);
    }

    #[test]
    fn a_part_is_told_if_the_rest_is_not_small() {
        assert!(is_told(20, 40, 11) && is_told(0, 40, 11) && is_told(40, 40, 11));
        assert!(!is_told(3, 40, 11) && !is_told(37, 40, 11));
    }
}
