//! What a training is told, with the paper's hyperparameters as defaults.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ClassWeight;
use crate::error::{Error, Result};
use crate::explainer;
use crate::history::History;
use crate::model::{Config, Dropouts};
use crate::paper::Hyperparameters;
use crate::prior::{Cells, PriorSettings};
use crate::question::{HeadConfig, Question};
use crate::split;

/// All settings of a training. `config.toml` in a run folder holds every one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What is learned.
    pub task: Question,
    /// Batches to learn from. The paper's million is more than is needed; a run can be made longer later.
    pub steps: u64,
    /// Decides the first weights, the order of encounters, dropout, and which diagnosis is hidden.
    pub seed: u64,
    /// Encounters per batch.
    pub batch: usize,
    /// Adam's.
    pub learning_rate: f64,
    /// The learning rate grows from zero over so many steps.
    pub warmup: u64,
    /// And then?
    pub decay: Decay,
    /// The largest norm of a gradient; 0 for any.
    pub clip: f64,
    /// Weight decay, apart from the gradient (AdamW), of all matrices, the embedding among them; 0 for none.
    #[serde(default)]
    pub weight_decay: f64,
    /// The share of each target that is spread evenly over all answers; 0 for none.
    #[serde(default)]
    pub label_smoothing: f64,
    /// The decay, per step, of an exponential moving average of the weights, which is then validated and
    /// saved instead of the weights of the last step; 0 for none.
    #[serde(default)]
    pub average: f64,
    /// What a positive of each label counts in the loss, beside 1 for a negative.
    #[serde(default)]
    pub class_weight: ClassWeight,
    /// The share of the training split that is learned from, by a hash of the subject: what is in a share is
    /// in every larger one. P counts all of the split.
    #[serde(default = "all")]
    pub train_share: f64,
    /// The folder of a run whose weights the first ones are; random if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<PathBuf>,
    /// Steps between validations. Each one is a checkpoint too.
    pub validate_every: u64,
    /// Validations without a better one before training ends early; 0 for never.
    pub patience: u64,
    /// What is seen of a subject's earlier encounters.
    #[serde(default)]
    pub history: History,
    /// Who is learned from, and who is not.
    pub split: split::Settings,
    /// How P is filled.
    pub prior: PriorSettings,
    /// Which model.
    pub model: Config,
    /// What it predicts.
    pub head: HeadConfig,
}

/// The whole training split.
fn all() -> f64 {
    1.0
}

/// What becomes of the learning rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// It stays, as in the paper.
    #[default]
    Constant,
    /// It falls to zero along half a cosine, at the last step.
    Cosine,
}

impl Settings {
    /// The paper's settings for a task and a model. `source` is the kind of the dataset: the paper has
    /// settings of its own for masked diagnosis on eICU.
    ///
    /// # Errors
    /// If there is no such model.
    pub fn paper(task: Question, model: &str, source: &str) -> Result<Self> {
        let mut config = Config::named(model)?;
        let paper = Hyperparameters::of(&task, config.name(), source);
        let dropout = Dropouts { mlp: paper.mlp_dropout, post_mlp: paper.post_mlp_dropout };
        match &mut config {
            Config::Gct(config) => {
                config.dropout = dropout;
                config.regularization = paper.regularization;
            }
            Config::Transformer(config) => config.dropout = dropout,
            Config::Gcn(config) | Config::GcnP(config) | Config::GcnRandom(config) => {
                config.dropout = dropout;
            }
            Config::Shallow(config) => config.dropout = dropout.mlp,
            Config::Deep(config) => {
                (config.dropout, config.post_dropout) = (dropout.mlp, dropout.post_mlp);
            }
            Config::Mime(config) => config.dropout = dropout.mlp,
            Config::Logistic(_) | Config::Explainer(_) => {}
        }
        let head = task.head();
        Ok(Settings {
            task,
            steps: 20_000,
            seed: 0,
            batch: 32,
            learning_rate: paper.learning_rate,
            warmup: 0,
            decay: Decay::default(),
            clip: 0.0,
            weight_decay: 0.0,
            label_smoothing: 0.0,
            average: 0.0,
            class_weight: ClassWeight::default(),
            train_share: all(),
            init: None,
            validate_every: 1000,
            patience: 0,
            history: History::default(),
            split: split::Settings::default(),
            prior: PriorSettings::default(),
            model: config,
            head,
        })
    }

    /// Refuses every value that makes no sense.
    ///
    /// # Errors
    /// The first one found.
    pub fn check(&self) -> Result<()> {
        let whole = |name: &str, value: u64, most: u64| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::setting(name, value, &format!("a whole number from 1 to {most}"))),
        };
        // Adam counts steps in 32 bits.
        whole("steps", self.steps, u32::MAX.into())?;
        whole("batch", self.batch as u64, 65_536)?;
        whole("validate_every", self.validate_every, u32::MAX.into())?;
        if !(self.learning_rate > 0.0 && self.learning_rate <= 10.0) {
            return Err(Error::setting("learning_rate", self.learning_rate, "a number above 0, up to 10"));
        }
        if !(0.0..=1e9).contains(&self.clip) {
            return Err(Error::setting("clip", self.clip, "a number from 0, which is no clipping, to 1e9"));
        }
        if !(0.0..=100.0).contains(&self.weight_decay) {
            let allowed = "a number from 0, which is no decay, to 100";
            return Err(Error::setting("weight_decay", self.weight_decay, allowed));
        }
        let share = |name: &str, value: f64| match (0.0..1.0).contains(&value) {
            true => Ok(()),
            false => Err(Error::setting(name, value, "a number from 0, which is none, to below 1")),
        };
        share("label_smoothing", self.label_smoothing)?;
        share("average", self.average)?;
        self.task.check_smoothing(self.label_smoothing)?;
        self.class_weight.check(&self.task)?;
        if !(self.train_share > 0.0 && self.train_share <= 1.0) {
            let allowed = "a number above 0, up to 1, which is all of the training split";
            return Err(Error::setting("train_share", self.train_share, allowed));
        }
        self.check_fits()?;
        self.check_init()?;
        if self.seed > i64::MAX as u64 || self.split.seed > i64::MAX as u64 {
            return Err(Error::setting("seed", "this", &format!("a whole number up to {}", i64::MAX)));
        }
        self.task.check_head(&self.head)?;
        self.prior.check()?;
        if (self.prior.cells, &self.task) == (Cells::Posterior, &Question::HiddenCode) {
            let allowed = "conditional, explained or association in this task: a hidden treatment is among what the \
                           posterior explains";
            return Err(Error::setting("prior.cells", "posterior", allowed));
        }
        self.check_history()?;
        self.model.check().map_err(|error| error.inside("model"))?;
        self.head.check(self.model.backbone(&self.head))
    }

    /// Refuses history where it makes no sense.
    fn check_history(&self) -> Result<()> {
        self.history.check()?;
        if let (Question::NextDiagnoses(_), split::By::Encounter) = (&self.task, self.split.by) {
            let allowed = "subject or recorded in this task: the next visit could be of another part";
            return Err(Error::setting("split.by", "encounter", allowed));
        }
        if self.history.is_none() {
            return Ok(());
        }
        let refused = |allowed: &str| {
            Err(Error::setting("history.aggregator", self.history.aggregator.name(), allowed))
        };
        match (&self.task, self.split.by) {
            (Question::Edges | Question::HiddenDiagnosis | Question::HiddenCode, _) => {
                refused("none in this task, which is about codes of one encounter")
            }
            (Question::Labels(_) | Question::NextDiagnoses(_), split::By::Encounter) => {
                refused("none with a split by encounter: a history would show encounters of another part")
            }
            (Question::Labels(_) | Question::NextDiagnoses(_), split::By::Recorded | split::By::Subject) => {
                Ok(())
            }
        }
    }

    /// Refuses settings of steps for a model that is fitted to convergence. Its learning rate, its batch and
    /// the steps between validations have no effect.
    fn check_fits(&self) -> Result<()> {
        let why = match self.model {
            Config::Logistic(_) => "logistic regression is fitted to convergence",
            Config::Explainer(_) => "an explainer counts, and its weights are fitted to convergence",
            _ => return Ok(()),
        };
        let decay = match self.decay {
            Decay::Constant => "constant",
            Decay::Cosine => "cosine",
        };
        for (name, value, off) in [
            ("warmup", self.warmup.to_string(), "0"),
            ("decay", decay.into(), "constant"),
            ("clip", self.clip.to_string(), "0"),
            ("weight_decay", self.weight_decay.to_string(), "0"),
            ("label_smoothing", self.label_smoothing.to_string(), "0"),
            ("average", self.average.to_string(), "0"),
        ] {
            if value != off {
                let allowed = format!("{off}, because {why}");
                return Err(Error::setting(name, value, &allowed));
            }
        }
        Ok(())
    }

    /// The last step that a training can make: with logistic regression, each of them is a fit.
    pub fn last_step(&self) -> u64 {
        match &self.model {
            Config::Logistic(config) => self.steps.min(config.c.len() as u64),
            Config::Explainer(_) => 1,
            _ => self.steps,
        }
    }

    /// Whether there is a validation after so many steps: after every fit of logistic regression.
    pub(crate) fn validates_after(&self, step: u64) -> bool {
        let is_fit = matches!(self.model, Config::Logistic(_) | Config::Explainer(_));
        is_fit || step.is_multiple_of(self.validate_every) || step == self.steps
    }

    /// C of the n-th fit of logistic regression, counted from 1; `None` of other models.
    pub fn c(&self, step: u64) -> Option<f64> {
        match &self.model {
            Config::Logistic(config) => config.c.get(step.checked_sub(1)? as usize).copied(),
            _ => None,
        }
    }

    /// How it is learned who causes what, if the model or its P says so.
    pub(crate) fn explainer(&self) -> Option<explainer::Settings> {
        match (&self.model, self.prior.cells) {
            (Config::Explainer(settings), _) => Some(*settings),
            (_, Cells::Posterior) => Some(self.prior.explainer.unwrap_or_default()),
            _ => None,
        }
    }

    /// Numbers per node, and per visit.
    pub fn width(&self) -> usize {
        self.model.width(&self.head)
    }

    /// The learning rate of a step, counted from 0.
    pub fn rate(&self, step: u64) -> f64 {
        let warmup = if step < self.warmup { (step + 1) as f64 / self.warmup as f64 } else { 1.0 };
        let decay = match self.decay {
            Decay::Constant => 1.0,
            Decay::Cosine => {
                let length = self.steps.saturating_sub(self.warmup).max(1) as f64;
                let passed = step.saturating_sub(self.warmup) as f64 / length;
                0.5 * (1.0 + (std::f64::consts::PI * passed.min(1.0)).cos())
            }
        };
        self.learning_rate * warmup * decay
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LogisticConfig;
    use crate::question::Labels;

    fn settings(task: Question, model: &str) -> Settings {
        Settings::paper(task, model, "synthetic").unwrap()
    }

    #[test]
    fn defaults_are_the_papers() {
        let gct = settings(Question::Labels(Labels::Mortality), "gct");
        let Config::Gct(config) = &gct.model else { panic!("{:?}", gct.model) };
        assert_eq!((gct.learning_rate, config.regularization), (0.00011, 1.5));
        assert_eq!((config.dropout.mlp, config.dropout.post_mlp), (0.72, 0.005));
        let deep = settings(Question::HiddenDiagnosis, "deep");
        let Config::Deep(config) = &deep.model else { panic!("{:?}", deep.model) };
        assert_eq!((deep.learning_rate, config.dropout, config.post_dropout), (0.0004, 0.12, 0.75));
        let eicu = Settings::paper(Question::HiddenDiagnosis, "gct", "eicu").unwrap();
        assert_eq!(eicu.learning_rate, 0.0009);
    }

    #[test]
    fn every_model_has_settings_for_every_task_that_it_can_learn() {
        let names = Question::NAMES.into_iter().chain(Question::NEXT_NAMES);
        for name in names.chain(["label:x", "labels:x,y"]) {
            for model in Config::NAMES {
                let checked = settings(name.parse().unwrap(), model).check();
                let can = match model {
                    "deep" | "mime" => name != "graph_reconstruction",
                    "logistic" => {
                        !["graph_reconstruction", "masked_diagnosis"].contains(&name)
                            && !Question::NEXT_NAMES.contains(&name)
                    }
                    "explainer" => !Question::NEXT_NAMES.contains(&name),
                    _ => true,
                };
                assert_eq!(checked.is_ok(), can, "{name} {model}");
            }
        }
    }

    #[test]
    fn the_rate_warms_up_and_cools_down() {
        let mut settings =
            Settings { steps: 10, warmup: 2, learning_rate: 1.0, ..settings(Question::Edges, "gct") };
        assert_eq!([0, 1, 2, 9].map(|step| settings.rate(step)), [0.5, 1.0, 1.0, 1.0]);
        settings.decay = Decay::Cosine;
        let [half, full, middle, end] = [0, 2, 6, 10].map(|step| settings.rate(step));
        assert_eq!((half, full), (0.5, 1.0));
        assert!((middle - 0.5).abs() < 1e-12 && end.abs() < 1e-12, "{middle} {end}");
    }

    #[test]
    fn logistic_regression_has_a_step_for_each_c_and_no_settings_of_adam() {
        let logistic = settings("label:x".parse().unwrap(), "logistic");
        assert_eq!((logistic.steps, logistic.last_step()), (20_000, 11));
        assert_eq!(Settings { steps: 3, ..logistic.clone() }.last_step(), 3);
        assert_eq!([0, 1, 11, 12].map(|step| logistic.c(step)), [None, Some(1e-4), Some(10.0), None]);
        assert!(logistic.validates_after(1));
        let refused = |settings: Settings| settings.check().unwrap_err().to_string();
        assert_eq!(
            refused(Settings { clip: 0.5, ..logistic.clone() }),
            "setting `clip`: 0.5 is not allowed; expected 0, because logistic regression is fitted to convergence"
        );
        assert_eq!(
            refused(Settings { decay: Decay::Cosine, ..logistic.clone() }),
            "setting `decay`: cosine is not allowed; expected constant, because logistic regression is fitted to \
             convergence"
        );
        for (c, problem) in [(vec![], "0 values"), (vec![1.0, 0.0], "0 is not"), (vec![f64::NAN], "NaN")] {
            let model = Config::Logistic(LogisticConfig { c });
            let error = refused(Settings { model, ..logistic.clone() });
            assert!(error.starts_with("setting `model.c`: ") && error.contains(problem), "{error}");
        }
        let error = refused(settings(Question::Edges, "logistic"));
        assert_eq!(
            error,
            "setting `model`: logistic is not allowed; expected another model, such as gct or shallow: it predicts \
             labels of the visit and nothing else"
        );
    }

    #[test]
    fn settings_of_an_older_program_are_those_that_it_had() {
        let settings = settings(Question::HiddenDiagnosis, "gct");
        let mut old = serde_json::to_value(&settings).unwrap();
        for name in ["weight_decay", "label_smoothing", "average", "class_weight", "train_share", "history"] {
            assert!(old.as_object_mut().unwrap().remove(name).is_some(), "{name}");
        }
        assert_eq!(serde_json::from_value::<Settings>(old).unwrap(), settings);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let good = settings(Question::Labels(Labels::Mortality), "gct");
        let refused = |settings: Settings| settings.check().unwrap_err().to_string();
        assert!(refused(Settings { steps: 0, ..good.clone() }).contains("`steps`: 0"));
        assert!(refused(Settings { learning_rate: f64::NAN, ..good.clone() }).contains("`learning_rate`"));
        assert!(refused(Settings { clip: -1.0, ..good.clone() }).contains("`clip`"));
        assert!(refused(Settings { weight_decay: -0.1, ..good.clone() }).contains("`weight_decay`: -0.1"));
        assert!(refused(Settings { label_smoothing: 1.0, ..good.clone() }).contains("`label_smoothing`: 1"));
        let weight = |number: f64| ClassWeight::Number(number);
        assert!(
            refused(Settings { class_weight: weight(0.0), ..good.clone() }).contains("`class_weight`: 0")
        );
        assert!(Settings { class_weight: ClassWeight::Balanced, ..good.clone() }.check().is_ok());
        let edges = Settings { class_weight: weight(2.0), ..settings(Question::Edges, "gct") };
        assert!(refused(edges).contains("expected 1 in this task"));
        assert!(refused(Settings { average: f64::NAN, ..good.clone() }).contains("`average`"));
        assert!(Settings { label_smoothing: 0.1, ..good.clone() }.check().is_ok());
        let edges = Settings { label_smoothing: 0.1, ..settings(Question::Edges, "gct") };
        assert!(refused(edges).contains("targets are edges"));
        assert!(refused(Settings { head: HeadConfig::RawEdges, ..good }).contains("`head`"));
    }
}
