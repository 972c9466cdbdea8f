//! What is known when a question is asked, between the records of a subject and the numbers of a model.

use std::ptr;

use crate::history::{History, Order, Window};
use crate::record::{CodeKind, Encounter, PerKind};

/// What is known when a question about an encounter is asked: the encounter, and with history those of its
/// subject before it. Where the question is about the next one, that is here as the truth, which no model
/// sees.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    encounter: &'a Encounter,
    before: &'a [Encounter],
    /// One of those before it, and the version of it that is seen instead; `None` if it is as if it had never
    /// been recorded.
    edited: Option<(&'a Encounter, Option<&'a Encounter>)>,
    window: Option<Window>,
    hidden: Option<(CodeKind, usize)>,
    next: Option<&'a Encounter>,
    counted: bool,
}

/// An encounter and those of its subject that its sample sees, to be asked about later.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedSample {
    /// The encounter that the question is about.
    pub encounter: Encounter,
    /// Those before it, the oldest first: those that are seen, and perhaps others. Empty without history.
    pub before: Vec<Encounter>,
    /// The next one, where the question is about it and it is known.
    pub next: Option<Encounter>,
}

impl From<Encounter> for OwnedSample {
    fn from(encounter: Encounter) -> Self {
        OwnedSample { encounter, before: Vec::new(), next: None }
    }
}

/// Why encounters cannot be the earlier visits of another one. Each is told by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongVisits {
    /// Earlier visits are not seen at all.
    NoHistory,
    /// One has no start; `None` is the encounter itself.
    NoStart(Option<usize>),
    /// One does not begin before the encounter.
    NotBefore(usize),
    /// Two begin at the same moment.
    SameStart([usize; 2]),
}

impl OwnedSample {
    /// An encounter with earlier visits of its patient, in any order. Where times are not needed and none is
    /// known, they are given the oldest first.
    ///
    /// # Errors
    /// If the order of the visits is not clear, or there is no history.
    pub fn with_visits(
        encounter: Encounter,
        visits: Vec<Encounter>,
        history: &History,
    ) -> Result<Self, WrongVisits> {
        if visits.is_empty() {
            return Ok(encounter.into());
        }
        if history.is_none() {
            return Err(WrongVisits::NoHistory);
        }
        let is_untimed = encounter.start.is_none() && visits.iter().all(|visit| visit.start.is_none());
        let before = match history.order == Order::Recorded && is_untimed {
            true => visits,
            false => by_time(&encounter, visits)?,
        };
        Ok(OwnedSample { before, ..encounter.into() })
    }
}

/// Visits before an encounter, the oldest first.
fn by_time(encounter: &Encounter, visits: Vec<Encounter>) -> Result<Vec<Encounter>, WrongVisits> {
    let asked = encounter.start.ok_or(WrongVisits::NoStart(None))?;
    let timed = visits.into_iter().enumerate().map(|(position, visit)| match visit.start {
        None => Err(WrongVisits::NoStart(Some(position))),
        Some(start) if start >= asked => Err(WrongVisits::NotBefore(position)),
        Some(start) => Ok((start, position, visit)),
    });
    let mut timed = timed.collect::<Result<Vec<_>, _>>()?;
    timed.sort_by_key(|(start, position, _)| (*start, *position));
    match timed.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(same) => Err(WrongVisits::SameStart([same[0].1, same[1].1])),
        None => Ok(timed.into_iter().map(|(.., visit)| visit).collect()),
    }
}

impl<'a> Sample<'a> {
    /// A sample of one encounter of which everything is known.
    pub fn of(encounter: &'a Encounter) -> Self {
        Sample {
            encounter,
            before: &[],
            edited: None,
            window: None,
            hidden: None,
            next: None,
            counted: false,
        }
    }

    /// The same of a training encounter: what was learned by counting has counted it too.
    pub(crate) fn counted(self) -> Self {
        Sample { counted: true, ..self }
    }

    /// Whether what was learned by counting has counted its encounter.
    pub(crate) fn was_counted(&self) -> bool {
        self.counted
    }

    /// The same with those of the encounters before it that a window sees; they are in the order of a
    /// dataset, the oldest first.
    ///
    /// # Panics
    /// If they are of another subject, or times that are known are not in order.
    pub(crate) fn with_history(self, before: &'a [Encounter], window: Option<Window>) -> Self {
        if window.is_some() {
            let all = || before.iter().chain(std::iter::once(self.encounter));
            for (one, next) in all().zip(all().skip(1)) {
                assert!(one.subject == next.subject, "a sample has one subject");
                let starts = one.start.zip(next.start);
                assert!(starts.is_none_or(|(one, next)| one <= next), "the oldest comes first");
            }
        }
        Sample { before, window, ..self }
    }

    /// The same with the next encounter of its subject as the truth.
    pub(crate) fn with_next(self, next: Option<&'a Encounter>) -> Self {
        Sample { next, ..self }
    }

    /// The same about another version of the encounter, with nothing hidden.
    pub(crate) fn about<'b>(self, encounter: &'b Encounter) -> Sample<'b>
    where
        'a: 'b,
    {
        Sample { encounter, hidden: None, ..self }
    }

    /// The same with another version of one of the encounters before it, which is told by its address; `None`
    /// as if it had never been recorded.
    pub(crate) fn with_earlier<'b>(self, earlier: &'b Encounter, version: Option<&'b Encounter>) -> Sample<'b>
    where
        'a: 'b,
    {
        Sample { edited: Some((earlier, version)), ..self }
    }

    /// The same with the diagnosis at this position of the encounter hidden from the model.
    ///
    /// # Panics
    /// If there is no such diagnosis.
    pub fn hiding(self, position: usize) -> Self {
        self.hiding_code(CodeKind::Diagnosis, position)
    }

    /// The same with the code of a kind at this position of the encounter hidden from the model.
    ///
    /// # Panics
    /// If there is no such code.
    pub fn hiding_code(self, kind: CodeKind, position: usize) -> Self {
        assert!(position < self.encounter.codes[kind].len(), "a {} that is there is hidden", kind.name());
        Sample { hidden: Some((kind, position)), ..self }
    }

    /// The encounter that the question is about.
    pub fn encounter(&self) -> &'a Encounter {
        self.encounter
    }

    /// A copy of what is seen, and of the earlier encounter that would be seen if another had never been
    /// recorded.
    pub fn to_owned_sample(&self) -> OwnedSample {
        let seen = self.window.into_iter().flat_map(|window| window.one_more_of(self.past(), self.encounter));
        let mut before: Vec<Encounter> = seen.cloned().collect();
        before.reverse();
        OwnedSample { encounter: self.encounter.clone(), before, next: self.next.cloned() }
    }

    /// The next encounter of the subject, where the question is about it and it is known: the truth.
    pub fn next(&self) -> Option<&'a Encounter> {
        self.next
    }

    /// Whether earlier encounters are seen, if there are any.
    pub fn has_history(&self) -> bool {
        self.window.is_some()
    }

    /// The earlier encounters that are seen, the latest first.
    pub fn history(&self) -> impl Iterator<Item = &'a Encounter> + use<'a> {
        let (past, encounter) = (self.past(), self.encounter);
        self.window.into_iter().flat_map(move |window| window.of(past.clone(), encounter))
    }

    /// Those before it, seen or not, the oldest first.
    fn past(&self) -> impl DoubleEndedIterator<Item = &'a Encounter> + Clone + use<'a> {
        let edited = self.edited;
        self.before.iter().filter_map(move |earlier| match edited {
            Some((one, version)) if ptr::eq(one, earlier) => version,
            _ => Some(earlier),
        })
    }

    /// Whether another sample has the same encounters before it, at the same place in memory.
    pub(crate) fn shares_history(&self, other: &Sample<'_>) -> bool {
        !self.before.is_empty() && ptr::eq(self.before.as_ptr(), other.before.as_ptr())
    }

    /// Whether all that is seen is one encounter.
    pub(crate) fn is_bag(&self) -> bool {
        self.window.is_some_and(|window| window.bag)
    }

    /// Whether there are more earlier encounters than may be seen.
    pub(crate) fn history_is_cut(&self) -> bool {
        self.window.is_some_and(|window| window.is_cut(self.before, self.encounter))
    }

    /// All that is seen as one encounter, if the model takes history as a bag of codes: the codes of all
    /// encounters, and the context of the one that the question is about. True edges are not known of it.
    pub(crate) fn bag(&self) -> Option<Encounter> {
        self.window.filter(|window| window.bag)?;
        let mut codes = self.encounter.codes.clone();
        for earlier in self.history() {
            for kind in CodeKind::OF_PAPER {
                codes[kind].extend(&earlier.codes[kind]);
            }
        }
        let bag = Encounter { codes: PerKind::default(), edges: None, ..self.encounter.clone() };
        Some(Encounter { codes: Encounter::new(codes).codes, ..bag })
    }

    /// When the question is asked, in microseconds since 1970-01-01, where that is known.
    pub fn time(&self) -> Option<i64> {
        self.encounter.prediction_time.or(self.encounter.start)
    }

    /// The kind of the hidden code, and its position among those of the encounter.
    pub fn hidden_position(&self) -> Option<(CodeKind, usize)> {
        self.hidden
    }

    /// The kind of the hidden code, and its id.
    pub fn hidden_code(&self) -> Option<(CodeKind, u32)> {
        self.hidden.map(|(kind, position)| (kind, self.encounter.codes[kind][position]))
    }

    /// The id of the hidden code, if it is a diagnosis.
    pub fn hidden_diagnosis(&self) -> Option<u32> {
        self.hidden_code().and_then(|(kind, id)| (kind == CodeKind::Diagnosis).then_some(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Aggregator, DAY, History};
    use crate::record::{Edges, SubjectId};

    fn encounter(day: i64, diagnoses: &[u32]) -> Encounter {
        let codes =
            PerKind { diagnosis: diagnoses.to_vec(), context: vec![day as u32], ..PerKind::default() };
        Encounter { start: Some(day * DAY), edges: Some(Edges::default()), ..Encounter::new(codes) }
    }

    fn window(aggregator: Aggregator) -> Option<Window> {
        History { aggregator, visits: 3, ..History::default() }.window()
    }

    #[test]
    fn a_question_is_about_one_encounter_and_sees_those_before_it() {
        let encounters = [1, 2, 3, 5].map(|day| encounter(day, &[3, 8]));
        let sample = Sample::of(&encounters[3]).with_history(&encounters[..3], window(Aggregator::Gru));
        let sample = sample.hiding(1);
        assert!(std::ptr::eq(sample.encounter(), &encounters[3]));
        let seen: Vec<i64> = sample.history().map(|earlier| earlier.start.unwrap() / DAY).collect();
        assert_eq!((seen, sample.history_is_cut()), (vec![3, 2], true));
        assert_eq!((sample.time(), sample.hidden_diagnosis()), (Some(5 * DAY), Some(8)));
        let owned = sample.to_owned_sample();
        assert_eq!(owned.before, encounters[..3], "one more than is seen");
        let asked = Encounter { prediction_time: Some(7), ..encounters[3].clone() };
        assert_eq!(Sample::of(&asked).time(), Some(7));
        assert_eq!(sample.about(&asked).history().count(), 2, "another version has the same history");
        let without = Sample::of(&encounters[3]).with_history(&encounters[..3], window(Aggregator::None));
        assert_eq!((without.has_history(), without.history().count()), (false, 0));
    }

    #[test]
    fn another_version_of_an_earlier_encounter_is_seen_or_none() {
        let encounters = [1, 2, 3, 5].map(|day| encounter(day, &[3, 8]));
        let sample = Sample::of(&encounters[3]).with_history(&encounters[..3], window(Aggregator::Gru));
        let days = |sample: &Sample<'_>| -> Vec<i64> {
            sample.history().map(|earlier| earlier.start.unwrap() / DAY).collect()
        };
        assert_eq!(days(&sample.with_earlier(&encounters[1], None)), [3, 1], "one more is seen");
        let edited = encounter(2, &[8]);
        let other = sample.with_earlier(&encounters[1], Some(&edited));
        let codes: Vec<usize> = other.history().map(|earlier| earlier.codes.diagnosis.len()).collect();
        assert_eq!((days(&other), codes), (vec![3, 2], vec![2, 1]));
    }

    #[test]
    fn visits_are_sorted_by_their_starts() {
        let history = |order| History { aggregator: Aggregator::Gru, order, ..History::default() };
        let untimed = || Encounter::new(PerKind::default());
        let of = |encounter: Encounter, visits: Vec<Encounter>, order: Order| {
            OwnedSample::with_visits(encounter, visits, &history(order)).map(|sample| sample.before)
        };
        let [first, second, asked] = [1, 2, 5].map(|day| encounter(day, &[day as u32]));
        for order in [Order::Time, Order::Recorded] {
            let visits = || vec![second.clone(), first.clone()];
            assert_eq!(of(asked.clone(), visits(), order), Ok(vec![first.clone(), second.clone()]));
            assert_eq!(of(first.clone(), visits(), order), Err(WrongVisits::NotBefore(0)));
            assert_eq!(of(untimed(), visits(), order), Err(WrongVisits::NoStart(None)));
            let visits = vec![second.clone(), untimed()];
            assert_eq!(of(asked.clone(), visits, order), Err(WrongVisits::NoStart(Some(1))));
            let visits = vec![second.clone(), first.clone(), second.clone()];
            assert_eq!(of(asked.clone(), visits, order), Err(WrongVisits::SameStart([0, 2])));
            assert_eq!(of(untimed(), Vec::new(), order), Ok(Vec::new()));
        }
        assert_eq!(of(untimed(), vec![untimed()], Order::Recorded), Ok(vec![untimed()]));
        assert_eq!(of(untimed(), vec![untimed()], Order::Time), Err(WrongVisits::NoStart(None)));
        let none = OwnedSample::with_visits(asked, vec![first], &History::default());
        assert_eq!(none, Err(WrongVisits::NoHistory));
    }

    #[test]
    fn a_bag_has_all_codes_and_the_context_of_the_last_encounter() {
        let encounters = [encounter(1, &[9]), encounter(2, &[3, 8]), encounter(4, &[5, 8])];
        let sample =
            |aggregator| Sample::of(&encounters[2]).with_history(&encounters[..2], window(aggregator));
        let bag = sample(Aggregator::Bag).bag().unwrap();
        assert_eq!((bag.codes.diagnosis, bag.codes.context), (vec![3, 5, 8, 9], vec![4]));
        assert_eq!(bag.edges, None);
        assert_eq!(sample(Aggregator::Gru).bag(), None);
    }

    #[test]
    #[should_panic(expected = "the oldest comes first")]
    fn the_future_is_no_history() {
        Sample::of(&encounter(1, &[])).with_history(&[encounter(5, &[])], window(Aggregator::Gru));
    }

    #[test]
    #[should_panic(expected = "one subject")]
    fn another_subject_is_no_history() {
        let other = Encounter { subject: SubjectId::new("another"), ..encounter(1, &[]) };
        Sample::of(&encounter(5, &[])).with_history(&[other], window(Aggregator::Gru));
    }
}
