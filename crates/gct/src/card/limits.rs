//! What speaks against trusting the results, as far as the facts say it, and how to repeat them.

use super::results::leaves_out;
use super::words::{complete, estimate, fact, folder, integer, list, percent, section, text};
use super::{DATA_FILE, Facts, Item, Section, TRAINING_FILE, outcome};
use crate::infer::Which;
use crate::overrides;
use crate::question::Question;
use crate::split::By;

/// With fewer examples of one of the two answers an evaluation says little: what is usually asked for
/// (Collins et al., Statistics in Medicine 2016).
const FEW: u64 = 100;

/// The share of unknown labels that is worth a word.
const MANY_UNKNOWN: f64 = 0.05;

impl Facts<'_> {
    pub(super) fn limits(&self) -> Section {
        let points = [
            self.limits_of_data(),
            self.limits_of_split(),
            self.limits_of_labels(),
            self.limits_of_training(),
            self.limits_of_results(),
        ];
        let items = vec![
            Item::Points(points.concat()),
            complete(
                "what the results mean, and other limits (items 25, 26); what a user must know and have (item 27)",
            ),
        ];
        section("Limits", "25 to 27", items)
    }

    fn limits_of_data(&self) -> Vec<String> {
        let mut points = Vec::new();
        let kind = self.preparation.kind();
        if self.preparation.is_synthetic() {
            points.push("The data are synthetic: the results say nothing about patients.".into());
        }
        match &self.other {
            None => points.push(format!(
                "All data are of one source ({kind}); the model was not validated on any other."
            )),
            Some(other) if other.preparation.kind() == kind => points.push(format!(
                "The other data are of the same kind of source ({kind}); whether they are of other hospitals, or of a \
                 later time, the data do not say."
            )),
            Some(_) => {}
        }
        let has_dates = |census: &super::census::Census| !census.starts.is_empty();
        if self.own.as_ref().is_some_and(|own| !has_dates(&own.census)) && !self.preparation.is_synthetic() {
            points.push(
                "Encounters have no dates: whether the model would do as well later was not tested.".into(),
            );
        }
        if self.preparation.setting("limit").is_some() {
            points.push("Only a part of the encounters of the source was taken.".into());
        }
        let late = outcome::hindsight(&self.preparation);
        if !late.is_empty() {
            points
                .push(format!("The model is given what is known only after the encounter: {}.", list(late)));
        }
        if self.preparation.text("after_discharge") == Some("keep") {
            points.push("Codes that were recorded after the end of the encounter are given.".into());
        }
        points
    }

    fn limits_of_split(&self) -> Vec<String> {
        let mut points = Vec::new();
        if let Some(warning) = self.evaluation.overlap.warning() {
            points.push(format!("{}{}.", warning[..1].to_uppercase(), &warning[1..]));
        }
        if self.run.settings().split.by == By::Encounter {
            let shared = self.own.as_ref().map_or(0, |own| own.census.shared_subjects);
            let how_many = match shared {
                0 => "Patients can have".into(),
                few if self.is_few(few) => "Some patients have".into(),
                shared => format!("{} patients have", integer(shared)),
            };
            points.push(format!(
                "{how_many} encounters in several parts of the split: the results can be too good."
            ));
        }
        if self.other.is_none() {
            let is_of_source = self.run.settings().split.by == By::Recorded
                && self.own.as_ref().is_none_or(|own| own.has_own_split);
            points.push(match is_of_source {
                true => {
                    "The split is that of the source; whether it is by time or place is not known.".into()
                }
                false => "The split is at random: not by time, and not by place.".into(),
            });
        }
        match self.evaluation.split {
            "train" => points.push("The results are of encounters that the model learned from.".into()),
            "validation" => points.push(
                "The results are of encounters by which the weights were chosen: they can be too good."
                    .into(),
            ),
            part if part == Which::All.name() && self.other.is_none() => {
                points.push(
                    "The results are of all encounters, those that the model learned from included.".into(),
                );
            }
            _ => {}
        }
        points
    }

    fn limits_of_labels(&self) -> Vec<String> {
        let mut points = Vec::new();
        let labels = self.run.settings().task.labels();
        for (index, label) in labels.iter().enumerate() {
            points.extend(self.few_in("evaluated encounters", self.evaluated(), index, label));
            let parts = |at: usize| self.own.as_ref().and_then(|own| own.told.parts.get(at));
            points.extend(self.few_in(
                "validation encounters, by which weights were chosen,",
                parts(1),
                index,
                label,
            ));
            let train = self.own.as_ref().and_then(|own| own.told.parts.first());
            points.extend(self.few_in("training encounters", train, index, label));
        }
        let Some(own) = self.own.as_ref().filter(|_| !labels.is_empty()) else { return points };
        if let (Some(all), Some(asked)) = (own.told.whole.encounters, own.told.whole.asked) {
            let unknown = all - asked;
            if unknown as f64 > MANY_UNKNOWN * all as f64 {
                points.push(format!(
                    "The label is unknown in {} of the encounters: if these differ from the others, the results do not \
                     hold for all.",
                    percent(unknown, all)
                ));
            }
        }
        points
    }

    /// A word about too few examples of one answer.
    fn few_in(
        &self,
        what: &str,
        part: Option<&super::census::ToldPart>,
        index: usize,
        label: &str,
    ) -> Option<String> {
        let Some([negative, positive]) = part?.labels.get(index)? else {
            return Some(format!(
                "{label}: fewer than {} of the {what} have one of the two answers.",
                self.min_cell
            ));
        };
        let (fewer, answer) =
            if positive <= negative { (positive, "positive") } else { (negative, "negative") };
        (*fewer < FEW)
            .then(|| format!("{label}: {} of the {what} are {answer}, fewer than {FEW}.", integer(*fewer)))
    }

    fn limits_of_training(&self) -> Vec<String> {
        let mut points = Vec::new();
        let last = self.entries.last().map(|entry| entry.step);
        if let Some(best) = self.best().filter(|best| Some(best.step) == last) {
            points.push(format!(
                "The last validation, of step {}, was the best: a longer training may do better.",
                integer(best.step)
            ));
        }
        points.push(format!(
            "One training with one seed ({}): how much others differ is not shown.",
            self.run.settings().seed
        ));
        points
    }

    fn limits_of_results(&self) -> Vec<String> {
        let mut points = Vec::new();
        if let Question::HiddenDiagnosis | Question::HiddenCode | Question::Edges = self.run.settings().task {
            points.push("The task is one to learn from; no clinical outcome is predicted.".into());
        }
        if let (Question::Labels(_), None) = (&self.run.settings().task, self.evaluation.calibrated) {
            points.push("Probabilities were not recalibrated.".into());
        }
        for series in self.series() {
            let label = series.name.map_or_else(String::new, |label| format!("{label}: "));
            let calibration = series.details.decisions.as_ref().filter(|_| series.told.is_some());
            let slope = calibration.map(|decisions| decisions.calibration.scores.get("slope"));
            if let Some(slope) = slope.filter(|slope| leaves_out(slope, 1.0)) {
                points.push(format!(
                    "{label}The calibration slope is {}, and its interval leaves out 1: probabilities are not what they say.",
                    estimate(&slope)
                ));
            }
            let hidden: Vec<String> = (series.details.subgroups.iter())
                .filter(|group| group.encounters.is_none())
                .map(|group| format!("{} {}", group.by, group.group))
                .collect();
            if !hidden.is_empty() {
                points
                    .push(format!("{label}Too small to be told, alone or by subtraction: {}.", list(hidden)));
            }
            let undefined: Vec<String> = (series.details.subgroups.iter())
                .filter(|group| group.encounters.is_some() && group.note.is_some())
                .map(|group| format!("{} {}", group.by, group.group))
                .collect();
            if !undefined.is_empty() {
                points.push(format!("{label}With one of the two answers only: {}.", list(undefined)));
            }
        }
        points
    }

    /// How the run and its metrics can be had again. Commands are for an edge to add.
    pub(super) fn repeat(&self) -> Section {
        let manifest = self.run.manifest();
        let mut facts = vec![
            fact("program", self.program),
            fact("run", &*self.name),
            fact("dataset", folder(&manifest.dataset.path)),
            fact("SHA-256 of its encounters", &*manifest.dataset.sha256),
            fact("SHA-256 of the weights", &*self.weights),
        ];
        if let Some(other) = &self.other {
            facts.push(fact("evaluated on", &*other.name));
            facts.push(fact("SHA-256 of its encounters", &*other.sha256));
        }
        let mut items = vec![Item::Facts(facts)];
        let settings = self.preparation.settings();
        if !settings.is_empty() {
            items.push(text(format!("Settings of the data, {DATA_FILE}:")));
            items.push(Item::Code(settings));
        }
        items.push(text(format!("Settings of the training, {TRAINING_FILE}:")));
        items.push(Item::Code(toml::to_string(&overrides::table(self.run.settings())).unwrap_or_default()));
        section("How to repeat it", "12, 18f", items)
    }
}
