//! Laws of the prior, over generated datasets.

use std::path::Path;

use gct::dataset::{Dataset, Source, Writer};
use gct::files::Overwrite;
use gct::graph::NodeRanges;
use gct::job::Job;
use gct::prior::{self, Cells, Hidden, HiddenRule, MatrixSettings, Prior};
use gct::record::{CodeKind, Encounter, EncounterId, PerKind, SubjectId};
use gct::split::{By, Split, SplitPart};
use proptest::prelude::*;

use crate::fixture;

const SIZES: PerKind<usize> = PerKind { diagnosis: 6, treatment: 7, lab: 5, context: 0 };

fn any_codes() -> impl Strategy<Value = PerKind<Vec<u32>>> {
    let codes = |size: usize| {
        prop::collection::btree_set(0..size as u32, 0..=size)
            .prop_map(|ids| ids.into_iter().collect::<Vec<u32>>())
    };
    (codes(SIZES.diagnosis), codes(SIZES.treatment), codes(SIZES.lab))
        .prop_map(|(diagnosis, treatment, lab)| PerKind { diagnosis, treatment, lab, ..PerKind::default() })
}

fn encounter(number: usize, codes: PerKind<Vec<u32>>) -> Encounter {
    Encounter {
        id: EncounterId::new(format!("e{number}")),
        // Every third subject has several encounters.
        subject: SubjectId::new(format!("s{}", number / 3 * 3)),
        ..Encounter::new(codes)
    }
}

fn fit(folder: &Path, split: &Split, encounters: &[Encounter]) -> Prior {
    let mut writer = Writer::create(folder, Overwrite::Replace, fixture::numbered(SIZES), vec![]).unwrap();
    writer.write(encounters).unwrap();
    let source =
        Source { kind: "hand-made".into(), settings: serde_json::json!({}), findings: serde_json::json!({}) };
    writer.finish(source).unwrap();
    prior::fit(&Dataset::open(folder).unwrap(), split, &Job::silent()).unwrap()
}

fn count(codes: &[PerKind<Vec<u32>>], cells: Cells) -> Prior {
    let mut counter = prior::Counter::new(SIZES).for_cells(cells);
    for (number, codes) in codes.iter().enumerate() {
        counter.add(&encounter(number, codes.clone()));
    }
    counter.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_in_validation_or_test_changes_it(
        codes in prop::collection::vec(any_codes(), 30..60),
        other in prop::collection::vec(any_codes(), 60),
        seed in 0u64..1000,
        by_encounter: bool,
    ) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        let split = Split::by_hash(seed, if by_encounter { By::Encounter } else { By::Subject });
        let numbered = codes.into_iter().enumerate();
        let before: Vec<Encounter> = numbered.map(|(n, codes)| encounter(n, codes)).collect();
        // Every encounter outside of the training split gets other codes, and half of them go altogether.
        let after: Vec<Encounter> = before
            .iter()
            .zip(other)
            .enumerate()
            .filter(|(n, (encounter, _))| split.part(encounter) == SplitPart::Train || n % 2 == 0)
            .map(|(_, (encounter, codes))| match split.part(encounter) {
                SplitPart::Train => encounter.clone(),
                _ => Encounter { codes, ..encounter.clone() },
            })
            .collect();
        let (fitted, refitted) = (fit(&folder, &split, &before), fit(&folder, &split, &after));
        prop_assert_eq!(&fitted, &refitted);
        let probe = encounter(0, PerKind::from_fn(|kind| (0..SIZES[kind] as u32).collect()));
        let settings = MatrixSettings::default();
        prop_assert_eq!(fitted.matrix(&probe, &settings), refitted.matrix(&probe, &settings));
        // And that is not because nothing changes it.
        let count = |part| before.iter().filter(|encounter| split.part(encounter) == part).count() as u64;
        prop_assert_eq!(fitted.encounters(), count(SplitPart::Train));
    }

    #[test]
    fn rows_sum_to_one_over_allowed_cells(
        codes in prop::collection::vec(any_codes(), 1..20),
        probe in any_codes(),
        scalar in 0.01f32..2.0,
        hide: prop::sample::Index,
    ) {
        let probe = encounter(0, probe);
        let nodes = NodeRanges::of(&probe);
        let len = nodes.len();
        let diagnoses = probe.codes.diagnosis.len();
        let kind = CodeKind::Diagnosis;
        let hide = |rule| (diagnoses > 0).then(|| Hidden { kind, position: hide.index(diagnoses), rule });
        let hidings = [None, hide(HiddenRule::KeepVisitAndSelf), hide(HiddenRule::AllZero)];
        let ways = [Cells::Conditional, Cells::Explained, Cells::Association].into_iter();
        let all = ways.flat_map(|cells| hidings.map(|hidden| (cells, hidden)));
        for (cells, hidden) in all {
            let matrix = count(&codes, cells).matrix(&probe, &MatrixSettings { scalar, cells, hidden });
            for (i, row) in matrix.chunks(len).enumerate() {
                let sum: f32 = row.iter().sum();
                let first = nodes.range(CodeKind::Diagnosis).start;
                match hidden.map(|hidden| (hidden.rule, first + hidden.position)) {
                    Some((HiddenRule::AllZero, node)) if node == i => prop_assert_eq!(sum, 0.0),
                    Some((HiddenRule::AllZero, _)) => prop_assert!(sum < 1.0 + 1e-5),
                    _ => prop_assert!((sum - 1.0).abs() < 1e-5, "row {i} sums to {sum}"),
                }
                for (j, &cell) in row.iter().enumerate() {
                    prop_assert!(cell >= 0.0 && (cell == 0.0 || nodes.allowed(i, j)), "({i}, {j}) is {cell}");
                }
            }
        }
    }

    #[test]
    fn a_hidden_diagnosis_leaves_no_trace_of_which_it_is(
        codes in prop::collection::vec(any_codes(), 1..20),
        treatment in prop::collection::btree_set(0..SIZES.treatment as u32, 1..5),
        one in 0u32..5,
        two in 0u32..5,
    ) {
        let treatment: Vec<u32> = treatment.into_iter().collect();
        // Shared cells do not even need the visit and self cells: whoever is hidden explains nothing.
        for (cells, rule) in [
            (Cells::Conditional, HiddenRule::KeepVisitAndSelf),
            (Cells::Explained, HiddenRule::KeepVisitAndSelf),
            (Cells::Explained, HiddenRule::AllZero),
            (Cells::Association, HiddenRule::KeepVisitAndSelf),
            (Cells::Association, HiddenRule::AllZero),
        ] {
            let prior = count(&codes, cells);
            let hidden = Some(Hidden { kind: CodeKind::Diagnosis, position: 0, rule });
            let settings = MatrixSettings { cells, hidden, ..MatrixSettings::default() };
            for others in [vec![], vec![5]] {
                let matrix = |hidden: u32| {
                    let diagnosis = [hidden].into_iter().chain(others.clone()).collect();
                    let treatment = treatment.clone();
                    let codes = PerKind { diagnosis, treatment, lab: vec![0], ..PerKind::default() };
                    prior.matrix(&encounter(0, codes), &settings)
                };
                prop_assert_eq!(matrix(one), matrix(two), "{:?}, {:?}, beside {:?}", cells, rule, others);
            }
        }
    }

    #[test]
    fn a_hidden_treatment_or_lab_leaves_no_trace_of_which_it_is(
        codes in prop::collection::vec(any_codes(), 1..20),
        one in 0u32..4,
        two in 0u32..4,
    ) {
        for cells in [Cells::Conditional, Cells::Explained] {
            let prior = count(&codes, cells);
            for kind in [CodeKind::Treatment, CodeKind::Lab] {
                let hidden = Some(Hidden { kind, position: 0, rule: HiddenRule::default() });
                let settings = MatrixSettings { cells, hidden, ..MatrixSettings::default() };
                let matrix = |hidden: u32| {
                    let (treatment, lab) = (vec![5], vec![4]);
                    let mut codes = PerKind { diagnosis: vec![0, 1], treatment, lab, ..PerKind::default() };
                    codes[kind].insert(0, hidden);
                    prior.matrix(&encounter(0, codes), &settings)
                };
                prop_assert_eq!(matrix(one), matrix(two), "{:?}, {:?}", cells, kind);
            }
        }
    }
}
