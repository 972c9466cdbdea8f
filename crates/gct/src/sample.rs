//! What is known when a question is asked, between the records of a subject and the numbers of a model.

use crate::record::Encounter;

/// Encounters of one subject, oldest first, as far as they are known when a question is asked. The question
/// is about the last one.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    encounters: &'a [Encounter],
    hidden: Option<usize>,
}

impl<'a> Sample<'a> {
    /// A sample of one encounter of which everything is known.
    pub fn of(encounter: &'a Encounter) -> Self {
        Sample::with_history(std::slice::from_ref(encounter))
    }

    /// A sample of encounters of one subject, oldest first.
    ///
    /// # Panics
    /// If there is no encounter, if they are of several subjects, or if times that are known are not in
    /// order.
    pub fn with_history(encounters: &'a [Encounter]) -> Self {
        assert!(!encounters.is_empty(), "a question is about an encounter");
        for pair in encounters.windows(2) {
            assert!(pair[0].subject == pair[1].subject, "a sample has one subject");
            let starts = pair[0].start.zip(pair[1].start);
            assert!(starts.is_none_or(|(before, after)| before <= after), "the oldest comes first");
        }
        Sample { encounters, hidden: None }
    }

    /// The same with the diagnosis at this position of the last encounter hidden from the model.
    ///
    /// # Panics
    /// If there is no such diagnosis.
    pub fn hiding(self, position: usize) -> Self {
        assert!(position < self.encounter().codes.diagnosis.len(), "a diagnosis that is there is hidden");
        Sample { hidden: Some(position), ..self }
    }

    /// The encounter that the question is about.
    pub fn encounter(&self) -> &'a Encounter {
        self.encounters.last().expect("a sample has an encounter")
    }

    /// The encounters before it, oldest first.
    pub fn history(&self) -> &'a [Encounter] {
        &self.encounters[..self.encounters.len() - 1]
    }

    /// When the question is asked, in microseconds since 1970-01-01, where that is known.
    pub fn time(&self) -> Option<i64> {
        let encounter = self.encounter();
        encounter.prediction_time.or(encounter.start)
    }

    /// The position of the hidden diagnosis among those of the encounter.
    pub fn hidden_position(&self) -> Option<usize> {
        self.hidden
    }

    /// The id of the hidden diagnosis.
    pub fn hidden_diagnosis(&self) -> Option<u32> {
        self.hidden.map(|position| self.encounter().codes.diagnosis[position])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PerKind, SubjectId};

    fn encounter(start: i64) -> Encounter {
        let codes = PerKind { diagnosis: vec![3, 8], ..PerKind::default() };
        Encounter { start: Some(start), ..Encounter::new(codes) }
    }

    #[test]
    fn a_question_is_about_the_last_encounter() {
        let encounters = [encounter(1), encounter(5), encounter(5)];
        let sample = Sample::with_history(&encounters).hiding(1);
        assert!(std::ptr::eq(sample.encounter(), &encounters[2]));
        assert_eq!(sample.history().len(), 2);
        assert_eq!((sample.time(), sample.hidden_diagnosis()), (Some(5), Some(8)));
        let asked = Encounter { prediction_time: Some(7), ..encounter(5) };
        assert_eq!(Sample::of(&asked).time(), Some(7));
    }

    #[test]
    #[should_panic(expected = "the oldest comes first")]
    fn the_future_is_no_history() {
        Sample::with_history(&[encounter(5), encounter(1)]);
    }

    #[test]
    #[should_panic(expected = "one subject")]
    fn another_subject_is_no_history() {
        let other = Encounter { subject: SubjectId::new("another"), ..encounter(1) };
        Sample::with_history(&[other, encounter(5)]);
    }
}
