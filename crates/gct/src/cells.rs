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

/// Which parts of a whole are told, each given by the counts of its cells: none with a small cell; and what
/// is not told, which can be had by subtraction from the whole, has no small cell taken together either.
pub(crate) fn told_parts<const N: usize>(parts: &[[u64; N]], min_cell: u64) -> Vec<bool> {
    let any_small = |cells: &[u64; N]| cells.iter().any(|cell| is_small(*cell, min_cell));
    let size = |index: &usize| parts[*index].iter().sum::<u64>();
    let mut told: Vec<bool> = parts.iter().map(|cells| !any_small(cells)).collect();
    loop {
        let untold = parts.iter().zip(&told).filter(|(_, told)| !**told);
        let rest = untold.fold([0; N], |sum, (cells, _)| std::array::from_fn(|at| sum[at] + cells[at]));
        let others = (0..parts.len()).filter(|index| told[*index] && size(index) > 0);
        match others.min_by_key(size).filter(|_| any_small(&rest)) {
            Some(smallest) => told[smallest] = false,
            None => return told,
        }
    }
}

/// How many encounters there are on a page, as far as that is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) encounters: Option<u64>,
    pub(crate) training: Option<u64>,
    pub(crate) asked: Option<u64>,
    pub(crate) left_out: Option<u64>,
}

/// How training encounters and those that were asked about, or left out, share a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
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
    pub(crate) fn told(
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
    use proptest::prelude::*;

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
    fn parts_that_are_not_told_cannot_be_had_by_subtraction() {
        assert_eq!(told_parts(&[[80], [12], [3]], 11), [true, false, false]);
        assert_eq!(told_parts(&[[80], [0], [30]], 11), [true, true, true]);
        assert_eq!(told_parts(&[[40, 400], [5, 60], [20, 300]], 11), [true, false, false]);
        assert_eq!(told_parts(&[[80], [12], [3]], 0), [true, true, true], "unless all is told");
        assert_eq!(told_parts(&[[8]], 11), [false], "nothing is left to hide it behind");
    }

    proptest! {
        #[test]
        fn no_sum_of_what_is_not_told_is_small(parts in prop::collection::vec([0u64..40, 0..40], 0..8)) {
            let told = told_parts(&parts, 11);
            let of = |wanted: bool| {
                let of = parts.iter().zip(&told).filter(move |(_, told)| **told == wanted);
                of.map(|(part, _)| part).collect::<Vec<&[u64; 2]>>()
            };
            let (hidden, shown) = (of(false), of(true));
            prop_assert!(shown.iter().flat_map(|part| part.iter()).all(|cell| !is_small(*cell, 11)));
            let rest = [0, 1].map(|at| hidden.iter().map(|part| part[at]).sum::<u64>());
            let nothing_else = shown.iter().all(|part| part.iter().sum::<u64>() == 0);
            prop_assert!(nothing_else || rest.iter().all(|cell| !is_small(*cell, 11)), "{parts:?} {told:?}");
        }
    }

    #[test]
    fn a_part_is_told_if_the_rest_is_not_small() {
        assert!(is_told(20, 40, 11) && is_told(0, 40, 11) && is_told(40, 40, 11));
        assert!(!is_told(3, 40, 11) && !is_told(37, 40, 11));
    }
}
