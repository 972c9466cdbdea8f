//! What the parts of a dataset hold of what a run is asked, counted in one pass, and what of it is told.

use rustc_hash::FxHashMap;

use crate::cells::is_small;
use crate::dataset::Dataset;
use crate::error::Result;
use crate::infer::{Predictor, Reader, Rounds, TestSet, Which};
use crate::job::Job;
use crate::record::{Encounter, SubjectId};
use crate::run::Run;
use crate::split::{Split, SplitPart};

/// Encounters of a dataset, part by part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Census {
    /// The parts of the split, or the only one.
    pub(super) parts: Vec<Part>,
    /// When encounters began, those that say so, in order.
    pub(super) starts: Vec<i64>,
    /// Encounters that say up to which moment their codes were taken.
    pub(super) with_prediction_time: u64,
    /// All subjects.
    pub(super) subjects: u64,
    /// Those with encounters in several parts.
    pub(super) shared_subjects: u64,
}

/// One part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) encounters: u64,
    pub(super) subjects: u64,
    /// Encounters with a true answer to the question of the run.
    pub(super) asked: u64,
    /// For each label of the question: in how many of them it is false, and true.
    pub(super) labels: Vec<[u64; 2]>,
}

impl Census {
    /// Of the dataset that a run learned from, by its split.
    pub(super) fn of_own(run: &Run, dataset: &Dataset, job: &Job<'_, u64>) -> Result<Self> {
        let (split, parts) = (Split::new(&run.settings().split, dataset)?, SplitPart::ALL);
        let reader = Reader::new(run, dataset, Which::All)?;
        let part = |encounter: &Encounter| {
            let part = split.part(encounter);
            parts.iter().position(|of| *of == part).unwrap_or_default()
        };
        Census::count(run, reader, &parts.map(SplitPart::name), part, job)
    }

    /// Of encounters of other data that a run is tested on.
    pub(super) fn of_test(
        run: &Run,
        dataset: &Dataset,
        TestSet { which, training }: TestSet,
        job: &Job<'_, u64>,
    ) -> Result<Self> {
        let reader = Reader::new(run, dataset, which)?.testing(run, dataset, training)?;
        Census::count(run, reader, &[which.name()], |_| 0, job)
    }

    fn count(
        run: &Run,
        reader: Reader,
        names: &[&'static str],
        part: impl Fn(&Encounter) -> usize,
        job: &Job<'_, u64>,
    ) -> Result<Self> {
        let (predictor, labels) = (Predictor::of_run(run)?, run.settings().task.labels().len());
        let empty = |name: &&'static str| Part { name, labels: vec![[0; 2]; labels], ..Part::default() };
        let mut census = Census { parts: names.iter().map(empty).collect(), ..Census::default() };
        // Of each subject, the parts that it has encounters in, a bit for each.
        let mut subjects: FxHashMap<SubjectId, u8> = FxHashMap::default();
        let mut rounds = Rounds::new(&predictor, reader);
        loop {
            let round = rounds.next(|_, _| true)?;
            if round.is_empty() {
                break;
            }
            for (encounter, is_asked) in round.iter().zip(predictor.tests(&round)) {
                let index = part(encounter);
                census.add(index, encounter, is_asked);
                *subjects.entry(encounter.subject.clone()).or_default() |= 1 << index;
                job.advance(census.encounters())?;
            }
        }
        for (index, part) in census.parts.iter_mut().enumerate() {
            part.subjects = subjects.values().filter(|parts| **parts & (1 << index) != 0).count() as u64;
        }
        census.subjects = subjects.len() as u64;
        census.shared_subjects = subjects.values().filter(|parts| parts.count_ones() > 1).count() as u64;
        census.starts.sort_unstable();
        Ok(census)
    }

    fn add(&mut self, index: usize, encounter: &Encounter, is_asked: bool) {
        let part = &mut self.parts[index];
        part.encounters += 1;
        self.starts.extend(encounter.start);
        self.with_prediction_time += u64::from(encounter.prediction_time.is_some());
        if !is_asked {
            return;
        }
        part.asked += 1;
        for (count, label) in part.labels.iter_mut().zip(&encounter.labels) {
            if let Some(label) = label {
                count[usize::from(*label)] += 1;
            }
        }
    }

    /// All encounters.
    pub(super) fn encounters(&self) -> u64 {
        self.parts.iter().map(|part| part.encounters).sum()
    }

    /// When encounters begin and end to begin, in microseconds: with a smallest cell the first and the last
    /// of those that have as many before or after them, themselves included, so that neither is one person's.
    pub(super) fn dates(&self, min_cell: u64) -> Option<[i64; 2]> {
        let trimmed = (min_cell.max(1) - 1) as usize;
        let last = self.starts.len().checked_sub(1 + trimmed)?;
        (trimmed <= last).then(|| [self.starts[trimmed], self.starts[last]])
    }

    /// What of it is told.
    pub(super) fn told(&self, min_cell: u64) -> Told {
        let parts: Vec<ToldPart> = self.parts.iter().map(|part| part.told(min_cell)).collect();
        // Beside its other parts, a whole tells one that is hidden.
        let all = |of: fn(&ToldPart) -> Option<u64>| parts.iter().map(of).sum::<Option<u64>>();
        let shown = |count: u64| !is_small(count, min_cell);
        let subjects = Some(self.subjects)
            .filter(|all| shown(*all) && shown(self.shared_subjects) && shown(self.encounters() - all));
        let label = |index: usize| {
            let counts: Option<Vec<[u64; 2]>> = parts.iter().map(|part| part.labels[index]).collect();
            counts
                .map(|counts| counts.iter().fold([0; 2], |sum, count| [sum[0] + count[0], sum[1] + count[1]]))
        };
        let whole = ToldPart {
            name: "all",
            encounters: all(|part| part.encounters),
            subjects: subjects.filter(|_| parts.iter().all(|part| part.subjects.is_some())),
            asked: all(|part| part.asked),
            labels: (0..parts.first().map_or(0, |part| part.labels.len())).map(label).collect(),
        };
        Told { whole, parts }
    }
}

/// What of a census is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) parts: Vec<ToldPart>,
    /// All of them together.
    pub(super) whole: ToldPart,
}

/// What of a part is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToldPart {
    pub(super) name: &'static str,
    pub(super) encounters: Option<u64>,
    pub(super) subjects: Option<u64>,
    pub(super) asked: Option<u64>,
    pub(super) labels: Vec<Option<[u64; 2]>>,
}

impl Part {
    fn told(&self, min_cell: u64) -> ToldPart {
        let shown = |count: u64| !is_small(count, min_cell);
        let label = |[negative, positive]: &[u64; 2]| {
            let cells = [*negative, *positive, self.asked - negative - positive];
            cells.into_iter().all(shown).then_some([*negative, *positive])
        };
        ToldPart {
            name: self.name,
            encounters: Some(self.encounters)
                .filter(|all| shown(*all) && shown(self.asked) && shown(all - self.asked)),
            subjects: Some(self.subjects).filter(|all| shown(*all) && shown(self.encounters - all)),
            asked: Some(self.asked).filter(|asked| shown(*asked)),
            labels: self.labels.iter().map(label).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn part(name: &'static str, others: u64, asked: u64, positive: u64) -> Part {
        let labels = vec![[asked - positive, positive]];
        Part { name, encounters: asked + others, subjects: asked + others, asked, labels }
    }

    fn census(parts: Vec<Part>) -> Census {
        let subjects = parts.iter().map(|part| part.subjects).sum();
        Census { parts, subjects, ..Census::default() }
    }

    #[test]
    fn all_is_told_without_a_smallest_cell() {
        let told = census(vec![part("train", 3, 80, 7), part("test", 0, 20, 2)]).told(0);
        assert_eq!((told.whole.encounters, told.whole.asked), (Some(103), Some(100)));
        assert_eq!(told.whole.labels, [Some([91, 9])]);
    }

    #[test]
    fn a_small_cell_hides_what_would_give_it() {
        let told = census(vec![part("train", 0, 80, 40), part("test", 3, 40, 7)]).told(11);
        let [train, test] = &told.parts[..] else { panic!() };
        assert_eq!((train.encounters, train.labels[0]), (Some(80), Some([40, 40])));
        assert_eq!((test.encounters, test.asked, test.labels[0]), (None, Some(40), None));
        assert_eq!((told.whole.encounters, told.whole.labels[0]), (None, None));
        assert_eq!(told.whole.asked, Some(120));
    }

    #[test]
    fn dates_are_not_those_of_a_single_encounter() {
        let dated = Census { starts: (0..30).collect(), ..Census::default() };
        assert_eq!(dated.dates(0), Some([0, 29]));
        assert_eq!(dated.dates(11), Some([10, 19]));
        assert_eq!(Census { starts: (0..20).collect(), ..Census::default() }.dates(11), None);
        assert_eq!(Census::default().dates(0), None);
    }

    proptest! {
        /// Every count that a reader can make of those that are told, by taking parts from the whole and
        /// counts of a part from each other, is none or at least 11.
        #[test]
        fn nothing_small_is_told_or_left_over(
            sizes in prop::collection::vec((0u64..15, 0u64..60, 0u64..60), 1..4)
        ) {
            let named = |(others, asked, positive): &(u64, u64, u64)| {
                part("x", *others, asked + positive, *positive)
            };
            let census = census(sizes.iter().map(named).collect());
            let told = census.told(11);
            let mut made: Vec<u64> = Vec::new();
            for part in told.parts.iter().chain([&told.whole]) {
                let label = part.labels[0];
                made.extend([part.encounters, part.subjects, part.asked].into_iter().flatten());
                made.extend(label.into_iter().flatten());
                made.extend(part.encounters.zip(part.asked).map(|(all, asked)| all - asked));
                made.extend(part.asked.zip(label).map(|(all, [no, yes])| all - no - yes));
                made.extend(part.encounters.zip(label).map(|(all, [no, yes])| all - no - yes));
            }
            let left = |of: &dyn Fn(&ToldPart) -> Option<u64>| {
                of(&told.whole).map(|all| all - told.parts.iter().filter_map(of).sum::<u64>())
            };
            made.extend(left(&|part| part.encounters));
            made.extend(left(&|part| part.asked));
            made.extend(left(&|part| part.labels[0].map(|[no, _]| no)));
            made.extend(left(&|part| part.labels[0].map(|[_, yes]| yes)));
            prop_assert!(made.iter().all(|count| !is_small(*count, 11)), "{census:?} {told:?}");
        }
    }
}
