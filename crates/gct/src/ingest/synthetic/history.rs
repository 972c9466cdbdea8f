//! Patients with several visits: each visit is drawn after the one before.
//!
//! The number of visits is geometric. Of the diagnoses of a visit, the chronic ones persist into the next
//! visit, each with the same chance. New diagnoses are drawn as in Algorithm 1, but that a draw may begin
//! with what comes with a diagnosis of the visit before, p(D|d), in place of p(D). Treatments and labs are
//! drawn from the visit's own diagnoses as ever: what led to what depends on nothing outside of the visit.
//!
//! A visit that fails the filter is drawn again, after the same visit before, so patients do not differ in
//! how many of their visits are left out.
//!
//! The label `later` of a visit depends on whether d1 led to m1 in an *earlier* visit of the patient: who
//! looks at the visit alone, or at codes without their connections, cannot know.

use rand::RngExt;
use rand_distr::{Distribution, LogNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::generator::{Draft, Generator, happens};
use super::rows::{Purpose, stream};

/// The most visits that a patient can have.
const MOST_VISITS: usize = 50;

/// A visit is drawn at most so many times. One draw in four passes the paper's filter.
const MOST_DRAWS: u64 = 1000;

/// First visits begin within a year of this, 2020-01-01, in minutes since 1970-01-01.
const BEGINNING: i64 = 18_262 * DAY;
const DAY: i64 = 24 * 60;
const HOUR: i64 = 60;

/// Days from the end of a visit to the start of the next: log-normal with this median and this standard
/// deviation of the logarithm, but at least one day.
const MEDIAN_DAYS: f64 = 60.0;
const SPREAD_OF_DAYS: f64 = 1.0;

/// Hours that a visit lasts, evenly from the least to the most.
const HOURS: [i64; 2] = [1, 12];

/// A patient as drawn: nobody, if the filter rejected every draw.
#[derive(Default)]
pub(super) struct Patient {
    pub(super) visits: Vec<Visit>,
    /// How many visits were drawn, those included that the filter rejected.
    pub(super) draws: u64,
}

pub(super) struct Visit {
    pub(super) draft: Draft,
    /// `None` for the paper's patients, who have one visit.
    pub(super) place: Option<Place>,
}

/// What a visit is among those of its patient.
pub(super) struct Place {
    /// In microseconds since 1970-01-01.
    pub(super) start: i64,
    pub(super) end: i64,
    /// The label.
    pub(super) later: bool,
}

impl Generator {
    /// The patient of this number.
    pub(super) fn patient(&self, number: u64) -> Patient {
        let settings = self.settings();
        if settings.visits.are_several() {
            return self.patient_of_several(&mut stream(settings.seed, Purpose::Patient, number));
        }
        let draft = self.draw(&mut stream(settings.seed, Purpose::Encounter, number), &[]);
        let visit = |draft| Visit { draft, place: None };
        Patient { visits: draft.map(visit).into_iter().collect(), draws: 1 }
    }

    fn patient_of_several(&self, rng: &mut Xoshiro256PlusPlus) -> Patient {
        let visits = self.settings().visits;
        let [connection, _] = self.label_pairs();
        let mut patient = Patient::default();
        let (mut calendar, mut has_led) = (Calendar::begin(rng), false);
        for _ in 0..number_of_visits(rng, visits.mean) {
            let before = patient.visits.last().map_or(&[][..], |visit| &visit.draft.diagnoses);
            let mut draws = 0;
            let draft = (0..MOST_DRAWS).find_map(|_| {
                draws += 1;
                self.draw(rng, before)
            });
            patient.draws += draws;
            let Some(draft) = draft else { break };
            let (start, end) = calendar.visit(rng);
            let later = happens(rng, if has_led { visits.later_hit } else { visits.later_base });
            has_led |= draft.causes.contains(&connection);
            patient.visits.push(Visit { draft, place: Some(Place { start, end, later }) });
        }
        patient
    }

    /// How many of so many visits after one with these diagnoses have each diagnosis, by draws that are the
    /// same for the same number. What the filter rejects is drawn again, as visits of patients are.
    pub(crate) fn draws_after(&self, before: &[u32], draws: u32, number: usize) -> Vec<u32> {
        let mut rng = self.spare_stream(number as u64);
        let mut counts = vec![0; self.settings().vocabulary.diagnosis as usize];
        for _ in 0..draws {
            let draft = (0..MOST_DRAWS).find_map(|_| self.draw(&mut rng, before));
            draft.iter().flat_map(|draft| &draft.diagnoses).for_each(|id| counts[*id as usize] += 1);
        }
        counts
    }

    /// The diagnoses of the visit before that are still there.
    pub(super) fn persisting(&self, rng: &mut Xoshiro256PlusPlus, before: &[u32]) -> Vec<u32> {
        let chronic = before.iter().filter(|diagnosis| self.is_chronic(**diagnosis));
        chronic.copied().filter(|_| happens(rng, self.settings().visits.persistence)).collect()
    }

    /// A new diagnosis that no other one of this visit brought.
    pub(super) fn new_diagnosis(&self, rng: &mut Xoshiro256PlusPlus, before: &[u32]) -> u32 {
        if before.is_empty() || !happens(rng, self.settings().visits.follow_on) {
            return self.diagnosis.sample(rng);
        }
        let earlier = before[rng.random_range(0..before.len())];
        self.co_diagnosis.get(earlier.into()).sample(rng)
    }
}

/// Which diagnoses are chronic, by id.
pub(super) fn chronic(seed: u64, diagnoses: u32, share: f64, always: u32) -> Vec<bool> {
    let mut rng = stream(seed, Purpose::Chronic, 0);
    let drawn = (0..diagnoses).map(|diagnosis| happens(&mut rng, share) || diagnosis == always);
    drawn.collect()
}

/// Geometric with this mean, and at most [`MOST_VISITS`].
fn number_of_visits(rng: &mut Xoshiro256PlusPlus, mean: f64) -> usize {
    let more = 1.0 - 1.0 / mean;
    1 + (1..MOST_VISITS).take_while(|_| happens(rng, more)).count()
}

/// When the visits of a patient are.
struct Calendar {
    /// The earliest start of the next visit, in minutes since 1970-01-01.
    next: i64,
}

impl Calendar {
    fn begin(rng: &mut Xoshiro256PlusPlus) -> Self {
        Calendar { next: BEGINNING + rng.random_range(0..365 * DAY) }
    }

    /// Start and end of the next visit, in microseconds since 1970-01-01.
    fn visit(&mut self, rng: &mut Xoshiro256PlusPlus) -> (i64, i64) {
        let [least, most] = HOURS.map(|hours| hours * HOUR);
        let (start, end) = (self.next, self.next + rng.random_range(least..=most));
        let days = LogNormal::new(MEDIAN_DAYS.ln(), SPREAD_OF_DAYS).expect("the spread is finite");
        self.next = end + (days.sample(rng).max(1.0) * DAY as f64).ceil() as i64;
        (start * 60_000_000, end * 60_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Settings, Visits};
    use super::*;

    fn generator(visits: Visits) -> Generator {
        Generator::new(&Settings { visits: Visits { mean: 3.0, ..visits }, ..Settings::default() }).unwrap()
    }

    fn rng() -> Xoshiro256PlusPlus {
        stream(4, Purpose::Spare, 0)
    }

    /// Whether something that was seen so often in so many draws has this probability, to five standard
    /// deviations.
    fn is_likely(seen: usize, draws: usize, probability: f64) -> bool {
        let deviation = (probability * (1.0 - probability) / draws as f64).sqrt();
        (seen as f64 / draws as f64 - probability).abs() <= 5.0 * deviation
    }

    #[test]
    fn a_share_of_the_diagnoses_is_chronic_and_d1_always_is() {
        let is_chronic = chronic(0, 100_000, 0.3, 7);
        assert!(is_likely(is_chronic.iter().filter(|chronic| **chronic).count(), 100_000, 0.3));
        assert_eq!(chronic(0, 3, 0.0, 1), [false, true, false]);
        assert!(generator(Visits { chronic: 0.0, ..Visits::default() }).is_chronic(199));
    }

    #[test]
    fn chronic_diagnoses_persist_and_others_do_not() {
        let generator = generator(Visits { persistence: 0.7, ..Visits::default() });
        let before: Vec<u32> = (0..40).collect();
        let (mut rng, mut seen) = (rng(), [0; 40]);
        for _ in 0..20_000 {
            generator.persisting(&mut rng, &before).iter().for_each(|d| seen[*d as usize] += 1);
        }
        for diagnosis in before {
            let probability = if generator.is_chronic(diagnosis) { 0.7 } else { 0.0 };
            assert!(is_likely(seen[diagnosis as usize], 20_000, probability), "{diagnosis}: {seen:?}");
        }
        assert!(seen.contains(&0) && seen.iter().any(|seen| *seen > 0), "both kinds are among them");
    }

    #[test]
    fn new_diagnoses_come_with_those_of_the_visit_before_or_by_themselves() {
        let generator = generator(Visits { follow_on: 0.6, ..Visits::default() });
        let before = [3, 199, 500];
        let alone: Vec<f64> = (0..1000).map(|id| generator.diagnosis.probability(id)).collect();
        let mut expected: Vec<f64> = alone.iter().map(|p| 0.4 * p).collect();
        let mut row = Vec::new();
        for diagnosis in before {
            generator.co_diagnosis.probabilities(diagnosis.into(), &mut row);
            expected.iter_mut().zip(&row).for_each(|(sum, p)| *sum += 0.2 * f64::from(*p));
        }
        let (mut rng, mut seen) = (rng(), vec![0; 1000]);
        (0..200_000).for_each(|_| seen[generator.new_diagnosis(&mut rng, &before) as usize] += 1);
        for (diagnosis, (seen, probability)) in seen.into_iter().zip(expected).enumerate() {
            assert!(is_likely(seen, 200_000, probability), "{diagnosis}: {seen} {probability}");
        }
        let mut seen = vec![0; 1000];
        (0..200_000).for_each(|_| seen[generator.new_diagnosis(&mut rng, &[]) as usize] += 1);
        let likely = seen.iter().zip(&alone).all(|(seen, p)| is_likely(*seen, 200_000, *p));
        assert!(likely, "at a first visit by themselves alone");
    }

    #[test]
    fn draws_after_a_visit_are_as_visits_after_it() {
        let generator = generator(Visits::default());
        let before = [3, 199, 500];
        let counts = generator.draws_after(&before, 2000, 7);
        assert_eq!(counts, generator.draws_after(&before, 2000, 7));
        assert_ne!(counts, generator.draws_after(&before, 2000, 8));
        // d1 is chronic, and comes anew as well; the filter favours visits with many diagnoses.
        assert!((1600..2000).contains(&counts[199]), "{}", counts[199]);
        assert!(counts.iter().sum::<u32>() >= 2000 * 5, "five diagnoses at least pass the filter");
    }

    #[test]
    fn the_number_of_visits_is_geometric_and_bounded() {
        let mut rng = rng();
        let mut draw =
            |mean| -> Vec<usize> { (0..50_000).map(|_| number_of_visits(&mut rng, mean)).collect() };
        let of_three = draw(3.0);
        for visits in 1..=5 {
            let seen = of_three.iter().filter(|drawn| **drawn == visits).count();
            let probability = (2.0_f64 / 3.0).powi(visits as i32 - 1) / 3.0;
            assert!(is_likely(seen, 50_000, probability), "{visits}: {seen}");
        }
        assert_eq!(draw(20.0).into_iter().max(), Some(MOST_VISITS));
    }

    #[test]
    fn visits_last_hours_and_are_days_apart() {
        let mut rng = rng();
        let mut calendar = Calendar::begin(&mut rng);
        let stays: Vec<_> = (0..20_000).map(|_| calendar.visit(&mut rng)).collect();
        let minutes = 60_000_000;
        assert!((BEGINNING..BEGINNING + 365 * DAY).contains(&(stays[0].0 / minutes)));
        assert!(stays.iter().all(|(start, end)| (60..=720).contains(&((end - start) / minutes))));
        let days = stays.windows(2).map(|two| (two[1].0 - two[0].1) as f64 / (DAY * minutes) as f64);
        let days: Vec<f64> = days.collect();
        assert!(days.iter().all(|days| *days >= 1.0));
        let few = days.iter().filter(|days| **days < MEDIAN_DAYS).count();
        assert!(is_likely(few, days.len(), 0.5), "{few} below the median");
    }
}
