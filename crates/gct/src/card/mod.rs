//! A model card: what a run is, what it learned from, how well it does, and what it must not be used for, in
//! the order of TRIPOD+AI (Collins et al., BMJ 2024;385:e078378), whose item numbers stand beside the
//! headings.
//!
//! A card says what the run, its dataset and an evaluation say, and nothing else: what only its authors can
//! know is marked as theirs to complete. It holds no value of a patient, and no count from 1 to below
//! `Options::min_cell`, nor any that would give such a one by subtraction.
//!
//! `gather` counts, `Card` is plain data, `Card::to_markdown` is one way to write it down.

mod census;
mod limits;
mod markdown;
mod methods;
mod outcome;
mod preparation;
mod results;
mod words;

use serde::Serialize;

use census::{Census, Told};
use preparation::Preparation;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::evaluate::{self, Evaluation};
use crate::infer::TestSet;
use crate::job::Job;
use crate::metric::{Aim, Bootstrap};
use crate::question::Question;
use crate::run::{Entry, Run};

/// What a card tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Counts from 1 to below this are not told; 0 tells all.
    pub min_cell: u64,
    /// For the intervals of metrics.
    pub bootstrap: Bootstrap,
    /// What encounters are grouped by; `None` for [`Options::USUAL_GROUPS`], as far as the data have them.
    pub by: Option<Vec<String>>,
}

impl Options {
    /// The context that a card looks at group by group, unless told otherwise.
    pub const USUAL_GROUPS: [&str; 2] = ["sex", "age"];

    /// What the thresholds of the operating points are chosen for.
    const AIMS: [Aim; 3] = [Aim::Sensitivity(0.8), Aim::Sensitivity(0.9), Aim::Alerts(100.0)];

    /// What an evaluation is asked, so that a card can be written of it.
    fn of_evaluation(&self, question: &Question, dataset: &Dataset) -> evaluate::Options {
        let has = |name: &&str| {
            let prefix = format!("{name}=");
            dataset.vocabulary().context.iter().any(|code| code.code.starts_with(&prefix))
        };
        let usual = || Options::USUAL_GROUPS.into_iter().filter(has).map(str::to_owned).collect();
        evaluate::Options {
            at: match question {
                Question::Labels(_) => Options::AIMS.to_vec(),
                Question::Edges
                | Question::HiddenDiagnosis
                | Question::HiddenCode
                | Question::NextDiagnoses(_) => Vec::new(),
            },
            by: self.by.clone().unwrap_or_else(usual),
            min_cell: self.min_cell,
            ..self.bootstrap.into()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { min_cell: evaluate::Options::MIN_CELL, bootstrap: Bootstrap::default(), by: None }
    }
}

/// What the settings of the data are called where a card says how to repeat them.
pub const DATA_FILE: &str = "data.toml";

/// The same of the settings of the training.
pub const TRAINING_FILE: &str = "training.toml";

/// A model card.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Card {
    /// What it is a card of.
    pub title: String,
    /// Its sections, in order.
    pub sections: Vec<Section>,
    /// What it does not tell, and others must not tell beside it.
    #[serde(skip)]
    pub(crate) hides: Hides,
}

/// Counts that a card does not tell, since they would give a small one by subtraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hides {
    /// All encounters of the dataset that the run learned from.
    pub(crate) encounters: bool,
    /// Those of its training split.
    pub(crate) training: bool,
}

/// A section of a card.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// The items of TRIPOD+AI that it answers: `5, 6a`.
    pub tripod: &'static str,
    /// What it says.
    pub items: Vec<Item>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A paragraph.
    Text(String),
    /// What only the authors of the model can say.
    ToComplete(String),
    /// A list.
    Points(Vec<String>),
    /// Names and values.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Text to be copied as it is: commands, settings.
    Code(String),
}

/// A table of texts. The first column names the rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, each as long as the columns.
    pub rows: Vec<Vec<String>>,
}

/// Everything that a card is written from.
struct Facts<'a> {
    run: &'a Run,
    /// The name of the run's folder.
    name: String,
    min_cell: u64,
    evaluation: &'a Evaluation,
    /// How the data that the run learned from were made.
    preparation: Preparation,
    /// What they hold, if they are at hand.
    own: Option<Own>,
    /// The other data that it was evaluated on.
    other: Option<Other>,
    entries: Vec<Entry>,
    parameters: usize,
    weights: String,
    program: &'static str,
}

/// The data that a run learned from.
struct Own {
    /// Whether its source said of encounters which part they are in.
    has_own_split: bool,
    census: Census,
    told: Told,
    /// How many codes of each kind an encounter has in the mean, where that is told.
    codes: crate::record::PerKind<Option<f64>>,
}

/// Other data than a run learned from.
struct Other {
    name: String,
    sha256: String,
    preparation: Preparation,
    census: Census,
    told: Told,
}

/// Evaluates a run and writes its card. The job is told how many encounters are done.
///
/// ```no_run
/// use gct::card::{self, Options};
/// use gct::infer::Which;
/// use gct::job::Job;
/// use gct::run::Run;
///
/// let run = Run::open("runs/mortality".as_ref())?;
/// let dataset = run.dataset()?;
/// let test = Which::default_for(&run, &dataset).into();
/// let card = card::gather(&run, &dataset, test, &Options::default(), &Job::silent())?;
/// println!("{}", card.to_markdown());
/// # Ok::<(), gct::Error>(())
/// ```
///
/// # Errors
/// If the run has no model, the dataset does not go with it or cannot be read, or the job is stopped.
pub fn gather(
    run: &Run,
    dataset: &Dataset,
    test_set: TestSet,
    options: &Options,
    job: &Job<'_, u64>,
) -> Result<Card> {
    let asked = options.of_evaluation(&run.settings().task, dataset);
    let evaluation = match evaluate::run(run, dataset, test_set, asked.clone(), job) {
        // Where validation has no positives, or is not at hand, nothing is chosen.
        Err(Error::NoThreshold { .. }) => {
            evaluate::run(run, dataset, test_set, evaluate::Options { at: Vec::new(), ..asked }, job)?
        }
        evaluation => evaluation?,
    };
    of(run, dataset, test_set, &evaluation, options.min_cell, job)
}

/// The card of a run that was evaluated already on these encounters.
///
/// # Errors
/// As [`gather`].
pub fn of(
    run: &Run,
    dataset: &Dataset,
    test_set: TestSet,
    evaluation: &Evaluation,
    min_cell: u64,
    job: &Job<'_, u64>,
) -> Result<Card> {
    let facts = Facts::new(run, dataset, test_set, evaluation, min_cell, &job.inner(|_| None))?;
    let sections = [facts.methods(), facts.results(), vec![facts.limits(), facts.repeat()]];
    Ok(Card {
        title: facts.title(),
        sections: sections.into_iter().flatten().collect(),
        hides: facts.hides(),
    })
}

impl<'a> Facts<'a> {
    fn new(
        run: &'a Run,
        dataset: &Dataset,
        test_set: TestSet,
        evaluation: &'a Evaluation,
        min_cell: u64,
        job: &Job<'_, u64>,
    ) -> Result<Self> {
        let is_own = run.is_of(dataset);
        let learned = match is_own {
            true => None,
            false => at_hand(run)?,
        };
        let own = learned.as_ref().or(Some(dataset).filter(|_| is_own));
        let other = (!is_own).then(|| Other::new(run, dataset, test_set, min_cell, job)).transpose()?;
        let source = own.map(|own| own.manifest().source.clone());
        Ok(Facts {
            run,
            name: words::folder(run.path()),
            min_cell,
            evaluation,
            preparation: Preparation::new(match source {
                Some(source) => source,
                None => kept_source(run)?,
            }),
            own: own.map(|own| Own::new(run, own, min_cell, job)).transpose()?,
            other,
            entries: run.entries()?,
            parameters: run.model()?.parameters().named().iter().map(crate::parameters::Named::len).sum(),
            weights: run.weights_hash()?,
            program: concat!("gct ", env!("CARGO_PKG_VERSION")),
        })
    }

    /// The evaluated encounters: the part of the own dataset, or the other one.
    fn evaluated(&self) -> Option<&census::ToldPart> {
        match (&self.other, &self.own) {
            (Some(other), _) => other.told.parts.first(),
            (None, Some(own)) if self.evaluation.split == own.told.whole.name => Some(&own.told.whole),
            (None, Some(own)) => own.told.parts.iter().find(|part| part.name == self.evaluation.split),
            (None, None) => None,
        }
    }

    fn hides(&self) -> Hides {
        let is_hidden = |of: fn(&Told) -> Option<u64>| {
            self.min_cell > 1 && self.own.as_ref().is_none_or(|own| of(&own.told).is_none())
        };
        Hides {
            encounters: is_hidden(|told| told.whole.encounters),
            training: is_hidden(|told| told.parts.first()?.encounters),
        }
    }

    fn best(&self) -> Option<&Entry> {
        self.entries.iter().rfind(|entry| entry.best)
    }
}

/// The dataset that a run learned from; nothing if it is not there any more.
fn at_hand(run: &Run) -> Result<Option<Dataset>> {
    match run.dataset() {
        Ok(dataset) => Ok(Some(dataset).filter(|dataset| run.check_dataset(dataset).is_ok())),
        Err(Error::DatasetMoved { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the run itself keeps of how its data were made.
fn kept_source(run: &Run) -> Result<crate::dataset::Source> {
    let kind = run.manifest().dataset.source.clone();
    let nothing = serde_json::Value::Null;
    let bare = crate::dataset::Source { kind, settings: nothing.clone(), findings: nothing };
    Ok(run.source()?.unwrap_or(bare))
}

impl Own {
    fn new(run: &Run, dataset: &Dataset, min_cell: u64, job: &Job<'_, u64>) -> Result<Self> {
        let census = Census::of_own(run, dataset, job)?;
        let told = census.told(min_cell);
        let codes = crate::record::PerKind::from_fn(|kind| {
            let of_all = dataset.manifest().codes[kind];
            let mean = of_all as f64 / census.encounters().max(1) as f64;
            (!crate::cells::is_small(of_all, min_cell)).then_some(mean)
        });
        Ok(Own { has_own_split: dataset.has_own_split()?, census, told, codes })
    }
}

impl Other {
    fn new(
        run: &Run,
        dataset: &Dataset,
        test_set: TestSet,
        min_cell: u64,
        job: &Job<'_, u64>,
    ) -> Result<Self> {
        let (manifest, census) = (dataset.manifest(), Census::of_test(run, dataset, test_set, job)?);
        Ok(Other {
            name: words::folder(dataset.path()),
            sha256: manifest.identity(),
            preparation: Preparation::new(manifest.source.clone()),
            told: census.told(min_cell),
            census,
        })
    }
}

impl Card {
    /// Adds commands or settings to the last section, which says how to repeat what the card describes.
    pub fn add(&mut self, item: Item) {
        if let Some(section) = self.sections.last_mut() {
            section.items.push(item);
        }
    }
}
