//! The first sections of a card: from the summary to how the model was evaluated.

use serde_json::Value;

use super::results::metric_name;
use super::words::{
    HIDDEN, complete, count, fact, folder, integer, list, month, number, percent, section, table, text,
};
use super::{Facts, Item, Section, outcome};
use crate::infer::Unseen;
use crate::overrides;
use crate::question::Question;
use crate::record::CodeKind;
use crate::split::By;

impl Facts<'_> {
    pub(super) fn title(&self) -> String {
        let settings = self.run.settings();
        format!("Model card: {} by {}", settings.task.in_words(), settings.model.name())
    }

    pub(super) fn methods(&self) -> Vec<Section> {
        vec![
            self.summary(),
            self.intended_use(),
            self.data(),
            self.participants(),
            self.data_preparation(),
            self.outcome(),
            self.prediction_time(),
            self.predictors(),
            self.sample_size(),
            self.missing_data(),
            self.model(),
            self.evaluation_methods(),
            self.open_science(),
        ]
    }

    fn summary(&self) -> Section {
        let (run, evaluation) = (self.run, self.evaluation);
        let data = &run.manifest().dataset.source;
        let mut items = vec![Item::Facts(vec![
            fact("question", outcome::of_question(&run.settings().task)),
            fact(
                "model",
                format!("{} ({})", model_name(run.settings().model.name()), run.settings().model.name()),
            ),
            fact("learned from", format!("{data} data, {}", self.learned_from())),
            fact("evaluated on", self.evaluated_on()),
            fact("result", self.headline()),
        ])];
        if let Some(warning) = evaluation.overlap.warning() {
            items.push(text(format!("Warning: {warning}.")));
        }
        if self.min_cell > 1 {
            let most = self.min_cell - 1;
            items.push(text(format!(
                "Counts from 1 to {most} are hidden, and so are those that would give such a count by subtraction."
            )));
        }
        section("Summary", "1, 2", items)
    }

    fn learned_from(&self) -> String {
        match &self.own {
            Some(own) => match own.told.parts.first().and_then(|part| part.encounters) {
                Some(encounters) => format!("{} encounters of the training split", integer(encounters)),
                None => "the encounters of the training split".into(),
            },
            None => "which are not at hand any more".into(),
        }
    }

    pub(super) fn evaluated_on(&self) -> String {
        let asked = match self.evaluated().and_then(|part| part.asked) {
            Some(asked) => integer(asked),
            None if self.is_few(self.evaluation.encounters) => HIDDEN.into(),
            None => integer(self.evaluation.encounters),
        };
        let place = match &self.other {
            Some(other) => format!("other {} data ({})", other.preparation.kind(), other.name),
            None => "the same data".into(),
        };
        let part = match self.evaluation.split {
            "all" => "all encounters".to_owned(),
            part => format!("the {part} split"),
        };
        format!("{asked} encounters: {part} of {place}")
    }

    pub(super) fn is_few(&self, count: u64) -> bool {
        crate::cells::is_small(count, self.min_cell)
    }

    fn intended_use(&self) -> Section {
        let mut items = vec![text(
            "For research. The model is not a medical device, and nothing on this card shows that it helps a patient. It \
             must not be used to decide about care.",
        )];
        if self.preparation.is_synthetic() {
            items.push(text(
                "The data are synthetic: the model knows made-up codes and can be used for no patient at all.",
            ));
        }
        items.push(complete(
            "the clinical question, and where in the care of a patient an answer would be used; existing models (item \
             3a)",
        ));
        items.push(complete("the people the model is meant for, and those who would use it (item 3b)"));
        items.push(complete("known inequalities of health between groups of these people (item 3c)"));
        section("Intended use and users", "3, 4", items)
    }

    fn data(&self) -> Section {
        let entry = &self.run.manifest().dataset;
        let mut facts = vec![
            fact("source", &*entry.source),
            fact("dataset", folder(&entry.path)),
            fact("SHA-256 of its encounters", &*entry.sha256),
        ];
        if let Some(own) = &self.own {
            facts.push(fact("encounters began", self.dates(&own.census)));
        }
        facts.push(fact("trained by", &*self.run.manifest().program));
        facts.extend(self.beginning());
        let mut items = vec![Item::Facts(facts)];
        if let Some(other) = &self.other {
            items.push(text("It was evaluated on other data:"));
            items.push(Item::Facts(vec![
                fact("source", other.preparation.kind()),
                fact("dataset", &*other.name),
                fact("SHA-256 of its encounters", &*other.sha256),
                fact("encounters began", self.dates(&other.census)),
            ]));
        }
        if self.own.is_none() {
            items.push(text(
                "The data that the run learned from were not at hand when this card was written.",
            ));
        }
        if !self.preparation.is_synthetic() {
            items.push(complete(
                "where and why the records were made, and whom they represent (item 5a); the end of follow-up (item 5b)",
            ));
            items.push(complete("kind, number and place of the hospitals or practices (item 6a)"));
        }
        section("Data", "5, 6a", items)
    }

    /// What the first weights had learned already, and how much of the training split was left out.
    fn beginning(&self) -> Vec<(String, String)> {
        let mut facts = Vec::new();
        if let Some(init) = &self.run.manifest().init {
            let seen = match init.test_encounters {
                Some(0) => "it learned from no encounter of the test split".into(),
                Some(some) if self.is_few(some) => "it learned from few encounters of the test split".into(),
                Some(some) => format!("it learned from {} encounters of the test split", integer(some)),
                None => "whom it learned from is not known".into(),
            };
            let weights = &init.weights_sha256;
            facts.push(fact("training began with a run of", format!("{}; {seen}", init.task.in_words())));
            facts.push(fact("SHA-256 of the weights of that run", &**weights));
        }
        let share = self.run.settings().train_share;
        let told = || fact("share of the training split that was learned from", share.to_string());
        facts.extend((share < 1.0).then(told));
        facts
    }

    fn dates(&self, census: &super::census::Census) -> String {
        let is_shifted = self.preparation.kind().starts_with("mimic");
        let note =
            if is_shifted { " (dates of this source are shifted, for each patient differently)" } else { "" };
        match census.dates(self.min_cell) {
            _ if census.starts.is_empty() => "not recorded".into(),
            None => HIDDEN.into(),
            Some([first, last]) => match self.min_cell {
                0 | 1 => format!("from {} to {}{note}", month(first), month(last)),
                least => format!(
                    "from {} to {}, but for {} encounters at each end{note}",
                    month(first),
                    month(last),
                    least - 1
                ),
            },
        }
    }

    /// Encounters of the dataset that the run learned from, if their number is told.
    fn kept_is_told(&self) -> bool {
        self.own.as_ref().is_some_and(|own| own.told.whole.encounters.is_some())
    }

    fn participants(&self) -> Section {
        let mut items = Vec::new();
        let flow = self.preparation.flow("encounters", self.kept_is_told(), self.min_cell);
        if let Some(flow) = flow {
            let mut rows = vec![vec!["encounters of the source".into(), count(flow.read)]];
            rows.extend(
                flow.dropped
                    .into_iter()
                    .map(|(rule, dropped)| vec![format!("left out: {rule}"), count(dropped)]),
            );
            rows.push(vec!["encounters of the dataset".into(), count(flow.kept)]);
            items.push(table(
                "Encounters, each rule applied to what those before it left",
                &["", "encounters"],
                rows,
            ));
        } else {
            items.push(text(match self.preparation.is_synthetic() {
                true => "Synthetic encounters: those with too few or too many codes were drawn anew.",
                false => "The dataset does not say which encounters of its source were left out.",
            }));
        }
        items.extend(
            self.preparation
                .setting("limit")
                .map(|limit| text(format!("Only the first {limit} encounters of the source were taken."))),
        );
        items.push(Item::Points(self.left_out()));
        items.extend((!self.preparation.is_synthetic()).then(|| {
            complete("why these rules were chosen, and the treatments that patients received, if that matters (item 6b, c)")
        }));
        section("Participants: who was left out, and why", "6b, 6c, 20a", items)
    }

    /// What was left out when the question was asked.
    fn left_out(&self) -> Vec<String> {
        let evaluation = self.evaluation;
        let told =
            |encounters: u64| if self.is_few(encounters) { HIDDEN.into() } else { integer(encounters) };
        let lacks = match self.run.settings().task {
            Question::Edges => "their true edges are not known",
            Question::Labels(_) => "their label is not known",
            Question::HiddenDiagnosis => "they have no diagnosis that could be hidden",
            Question::HiddenCode => "they have no code that could be hidden",
            Question::NextDiagnoses(_) => "no later visit of the patient is known",
        };
        let part = match evaluation.split {
            "all" => "all encounters".to_owned(),
            part => format!("the {part} split"),
        };
        let mut points = vec![match evaluation.left_out {
            0 => format!("Of {part}, none was left out of the results."),
            some => format!("Of {part}, {} were left out of the results: {lacks}.", told(some)),
        }];
        if self.other.is_some() {
            let fate = if evaluation.overlap.included { "were kept" } else { "were left out" };
            let encounters = told(evaluation.overlap.encounters);
            points.push(format!("{encounters} encounters of subjects that the run learned from {fate}."));
        }
        if let Question::Labels(_) = self.run.settings().task {
            for label in self.run.settings().task.labels() {
                for (reason, encounters) in self.preparation.unknown(&label, self.min_cell) {
                    let encounters = count(encounters);
                    points.push(format!(
                        "{label} is unknown in {encounters} encounters of the dataset: {reason}."
                    ));
                }
            }
        }
        points
    }

    fn data_preparation(&self) -> Section {
        let preparation = &self.preparation;
        if !preparation.is_prepared() {
            let how = match preparation.is_synthetic() {
                true => {
                    "Encounters were drawn by the generator of the paper; its settings are in the dataset."
                }
                false => "The dataset does not say how it was prepared.",
            };
            return section("Data preparation", "7", vec![text(how)]);
        }
        let set = |name: &str| preparation.setting(name).map(plain);
        let mut facts: Vec<(String, String)> = [
            ("min_count", "a code occurs in at least so many encounters"),
            ("rare", "what becomes of rarer codes"),
            ("lab_bins", "buckets of values, by quantiles of the training split"),
            ("rollup_unmapped", "what becomes of codes in no group"),
            ("like", "codes and buckets are those of"),
            ("rules", "rules"),
        ]
        .into_iter()
        .filter(|(name, _)| match *name {
            "rare" => set("min_count").is_some_and(|least| least != "0" && least != "1"),
            "rollup_unmapped" => CodeKind::ALL.into_iter().any(|kind| preparation.rollup(kind).is_some()),
            _ => true,
        })
        .filter_map(|(name, words)| Some(fact(words, set(name)?)))
        .collect();
        let options = preparation.setting("options").and_then(Value::as_object).into_iter().flatten();
        let options = options.filter(|(_, value)| !value.is_null());
        facts.extend(options.map(|(name, value)| fact(name.replace('_', " "), plain(value))));
        let same = "The same was done to the records of all subjects and groups.";
        section("Data preparation", "7", vec![Item::Facts(facts), text(same)])
    }

    fn outcome(&self) -> Section {
        let question = &self.run.settings().task;
        let mut items = vec![text(outcome::of_question(question))];
        match question {
            Question::Labels(_) => {
                for label in question.labels() {
                    items.push(match outcome::of_label(&self.preparation, &label) {
                        Some(definition) => text(format!("{label}: {definition}.")),
                        None => complete(format!(
                            "the definition of the label {label}, which the data do not give: who is positive, by which \
                             records, and within which time (item 8a)"
                        )),
                    });
                }
                items.extend(self.prevalence());
                if !self.preparation.is_synthetic() {
                    items.push(complete("who assessed the outcome, and what they knew by then (items 8b, 8c)"));
                }
            }
            Question::Edges => items.push(text(match self.preparation.is_synthetic() {
                true => "The true edges are those by which the generator drew the encounter.",
                false => "The true edges are the reasons that the source records.",
            })),
            Question::HiddenDiagnosis => items.push(text(
                "In evaluation the hidden diagnosis of an encounter is always the same one. This is a task to learn from, \
                 not a clinical outcome.",
            )),
            Question::HiddenCode => items.push(text(
                "In evaluation the hidden code of an encounter is always the same one. This is a task to learn from, not a \
                 clinical outcome.",
            )),
            Question::NextDiagnoses(_) => items.push(text(
                "The next visit is the first one of the patient that begins after the visit is over, however much later \
                 that is. Patients who do not come back, or elsewhere, are not among the results.",
            )),
        }
        section("Outcome", "8", items)
    }

    /// How many have each label, part by part.
    fn prevalence(&self) -> Vec<Item> {
        let Some(own) = &self.own else { return Vec::new() };
        let labels = self.run.settings().task.labels();
        let of_label = |(index, label): (usize, &String)| {
            let part = |part: &super::census::ToldPart| {
                let counts = part.labels[index];
                let all = counts.map(|[negative, positive]| negative + positive);
                let share = counts.map(|[negative, positive]| percent(positive, negative + positive));
                let positive = count(counts.map(|[_, positive]| positive));
                vec![part.name.to_owned(), count(all), positive, share.unwrap_or_else(|| HIDDEN.into())]
            };
            let rows = own.told.parts.iter().chain([&own.told.whole]).map(part).collect();
            table(format!("Prevalence of {label}"), &["split", "known", "positive", "prevalence"], rows)
        };
        labels.iter().enumerate().map(of_label).collect()
    }

    fn prediction_time(&self) -> Section {
        let with_time = self.own.as_ref().map(|own| own.census.with_prediction_time);
        let mut items = vec![Item::Points(outcome::moment(&self.preparation, with_time))];
        let late = outcome::hindsight(&self.preparation);
        if !late.is_empty() {
            let names = list(late);
            items.push(text(format!("Known only after the encounter, and yet given: {names}.")));
        }
        if !self.preparation.is_prepared() && !self.preparation.is_synthetic() {
            items.push(complete("which codes are known at the moment of prediction (item 9b)"));
        }
        section("Moment of prediction", "8a, 9b", items)
    }

    fn predictors(&self) -> Section {
        let vocabulary = self.run.vocabulary();
        let kinds = CodeKind::ALL.into_iter().filter(|kind| kind.is_shown(vocabulary[*kind].len() as u64));
        let row = |kind: CodeKind| {
            let mean = self.own.as_ref().map(|own| own.codes[kind]);
            let mean = mean.map_or_else(
                || "-".into(),
                |mean| mean.map_or_else(|| HIDDEN.into(), |mean| format!("{mean:.2}")),
            );
            let bucketed = self.preparation.bucketed(kind);
            let buckets = if bucketed == 0 { "-".into() } else { integer(bucketed as u64) };
            let bound = |name: &str| self.preparation.bound(name, kind).filter(|bound| *bound > 0);
            let bounds = match (bound("min_codes"), bound("max_codes")) {
                (None, None) => "-".into(),
                (least, Some(most)) => format!("{} to {most}", least.unwrap_or_default()),
                (Some(least), None) => format!("{least} or more"),
            };
            let rollup = self.preparation.rollup(kind).unwrap_or_else(|| "-".into());
            let codes = integer(vocabulary[kind].len() as u64);
            vec![kind.name().to_owned(), codes, mean, bounds, rollup, buckets]
        };
        let columns =
            ["kind", "codes", "per encounter", "allowed per encounter", "rolled up by", "codes with buckets"];
        let mut items = vec![
            text(
                "An encounter is a set of codes. A code is in it or not: how often, in which order and when it was recorded \
                 is not used.",
            ),
            table("Codes that the model knows", &columns, kinds.map(row).collect()),
        ];
        let context = self.preparation.context();
        if !context.is_empty() {
            items.push(text(format!(
                "Context, what is known of the patient and the visit: {}.",
                list(context)
            )));
        }
        section("Predictors", "9", items)
    }

    fn sample_size(&self) -> Section {
        let columns = ["split", "encounters", "subjects", "evaluable encounters"];
        let rows = |told: &super::census::Told| {
            let whole = (told.parts.len() > 1).then_some(&told.whole);
            let row = |part: &super::census::ToldPart| {
                vec![part.name.to_owned(), count(part.encounters), count(part.subjects), count(part.asked)]
            };
            told.parts.iter().chain(whole).map(row).collect()
        };
        let mut items = Vec::new();
        match &self.own {
            Some(own) => items.push(table("Data that the run learned from", &columns, rows(&own.told))),
            None => items.push(text("The data that the run learned from are not at hand to be counted.")),
        }
        items.extend(
            self.other
                .as_ref()
                .map(|other| table("Data that it was evaluated on", &columns, rows(&other.told))),
        );
        items.push(text("All encounters that passed the rules were used; no size was computed in advance."));
        section("Sample size", "10, 21", items)
    }

    fn missing_data(&self) -> Section {
        let evaluation = self.evaluation;
        let mut points = vec![
            "A code that was not recorded is not in the encounter: a test that was not done, a finding that is absent and \
             one that nobody wrote down are the same to the model. Nothing is imputed."
                .to_owned(),
            "Encounters without a true answer are left out of training and evaluation; encounters of the \
             training split without one are still counted for the conditional probabilities."
                .to_owned(),
        ];
        if let Some(rows) = self.preparation.unreadable(self.min_cell) {
            points.push(format!("{} rows of the source could not be read and were left out.", integer(rows)));
        }
        if self.other.is_some() {
            let Unseen { codes, occurrences } = evaluation.unseen;
            points.push(match self.is_few(codes) || self.is_few(occurrences) {
                true => "Codes of the other data that the run does not know were left out.".into(),
                false => format!(
                    "{} codes of the other data that the run does not know were left out, {} times.",
                    integer(codes),
                    integer(occurrences)
                ),
            });
        }
        section("Missing data", "11", vec![Item::Points(points)])
    }

    fn model(&self) -> Section {
        let (run, settings) = (self.run, self.run.settings());
        let made = self.entries.last().map_or(0, |entry| entry.step);
        let best = match self.best() {
            Some(best) => format!(
                "step {} of {}, with the best validation {} of {}",
                integer(best.step),
                integer(made),
                metric_name(settings.task.chosen_by()),
                number(best.value)
            ),
            None => format!("the last step, {}, since no validation was defined", integer(made)),
        };
        let of_model: Vec<String> = flat("", &overrides::table(&settings.model).into())
            .into_iter()
            .filter(|(name, _)| name != "name")
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let mut facts = vec![
            fact("model", format!("{} ({})", model_name(settings.model.name()), settings.model.name())),
            fact("parameters", integer(self.parameters as u64)),
            fact("hyperparameters", list(of_model)),
            fact("learning rate", format!("{}", settings.learning_rate)),
            fact("encounters per step", integer(settings.batch as u64)),
            fact("weights used", best),
            fact("chosen by", format!("{} on the validation split", metric_name(settings.task.chosen_by()))),
            fact("seed", format!("{} (split: {})", settings.seed, settings.split.seed)),
        ];
        let all = overrides::table(settings);
        let weighted = |weight: &&toml::Value| weight.as_float() != Some(1.0);
        let class_weight = all.get("class_weight").filter(weighted);
        facts.push(fact("class weight", class_weight.map_or_else(|| "none".into(), ToString::to_string)));
        facts.push(fact("recalibration", self.recalibration()));
        facts.push(fact("SHA-256 of the weights", &*self.weights));
        facts.push(fact("program", &*run.manifest().program));
        section("Model", "12, 13, 22", vec![Item::Facts(facts)])
    }

    fn evaluation_methods(&self) -> Section {
        let split = &self.run.settings().split;
        let has_own_split = self.own.as_ref().map(|own| own.has_own_split);
        let by = match (split.by, has_own_split) {
            (By::Recorded, Some(true)) => "as their source says, and otherwise by subject",
            (By::Recorded, None) => "as their source says, or by subject",
            (By::Recorded, Some(false)) | (By::Subject, _) => {
                "by subject: all encounters of a patient are in one part"
            }
            (By::Encounter, _) => "by encounter: a patient can be in several parts",
        };
        let mut points = vec![
            format!("The data are split 8:1:1 into training, validation and test, {by} (seed {}).", split.seed),
            "Weights were chosen on the validation split. No choice that this card knows of was made on the test split."
                .into(),
            "Intervals hold the middle 95 % of bootstrap replicates that draw whole subjects.".into(),
        ];
        if let Some(label) = &split.stratify {
            points.push(format!("Positives of {label} are spread evenly over the parts."));
        }
        if self.other.is_some() {
            points.push("The results are of other data than those that the run learned from.".into());
        }
        section("How it was evaluated", "12, 14 to 16", vec![Item::Points(points)])
    }

    fn open_science(&self) -> Section {
        let missing = [
            "ethical approval and consent (item 17)",
            "funding and conflicts of interest (items 18a, 18b)",
            "protocol and registration (items 18c, 18d); where data and code can be had (items 18e, 18f)",
            "whether patients and the public took part (item 19)",
        ];
        section("Ethics and open science", "17 to 19", missing.map(complete).into())
    }
}

/// The name of a model as the field writes it.
fn model_name(name: &str) -> &str {
    match name {
        "gct" => "Graph Convolutional Transformer",
        "transformer" => "Transformer",
        "gcn" => "graph convolution with the true structure",
        "gcn_p" => "graph convolution with conditional probabilities",
        "gcn_random" => "graph convolution with random weights",
        "shallow" => "layers on each code, then a sum",
        "deep" => "layers on each code, a sum, layers on the sum",
        "mime" => "MiME",
        "logistic" => "logistic regression",
        "explainer" => "an account of who causes what",
        other => other,
    }
}

/// Settings by their names, with dots between the parts.
fn flat(prefix: &str, value: &toml::Value) -> Vec<(String, String)> {
    match value {
        toml::Value::Table(table) => {
            let name = |key: &str| if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
            table.iter().flat_map(|(key, value)| flat(&name(key), value)).collect()
        }
        toml::Value::String(text) => vec![(prefix.to_owned(), text.clone())],
        value => vec![(prefix.to_owned(), value.to_string())],
    }
}

/// A value of JSON as text; names of files without the way to them.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => super::preparation::name_of(text),
        Value::Array(values) => list(values.iter().map(plain)),
        value => value.to_string(),
    }
}
