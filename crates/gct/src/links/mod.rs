//! Links between diagnoses and treatments, and between treatments and labs, over many encounters: a row per
//! pair of codes, with a strength. What the strength is depends on where it comes from:
//! see [`Strength`](crate::links::Strength).
//!
//! The page of a report has the same links (`tally`), each direction by itself. `reference` compares them
//! with a list of links that are known, such as indications of drugs.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use gct::dataset::Dataset;
//! use gct::files::Overwrite;
//! use gct::infer::Which;
//! use gct::job::Job;
//! use gct::links::{self, Settings};
//! use gct::prior::Cells;
//! use gct::run::Run;
//!
//! let (run, dataset) = (Run::open(Path::new("run"))?, Dataset::open(Path::new("data"))?);
//! let settings = Settings { min_support: 20, top: Some(100), ..Settings::default() };
//! let found = links::of_run(&run, &dataset, Which::All, &settings, &Job::silent())?;
//! for link in &found.links {
//!     println!("{} -> {}: {:.3}", found.code(link.cause).code, found.code(link.effect).code, link.strength);
//! }
//! let counted = links::of_dataset(&dataset, Cells::Association, &settings, &Job::silent())?;
//! counted.write(("links.csv", Overwrite::Refuse))?;
//! # Ok::<(), gct::Error>(())
//! ```

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use itertools::Itertools;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::evaluate;
use crate::graph::{self, Layer, LayerKind, NodeRanges};
use crate::infer::{LOOKED_AT, Predictor, Reader, Unseen, Which, in_rounds};
use crate::job::Job;
use crate::model::Config;
use crate::predict::{Explainer, RowFile, Target, hidden_node};
use crate::prior::Cells;
use crate::record::{Code, CodeKind, Encounter, Vocabulary};
use crate::run::Run;

mod counted;
mod reference;
mod tally;

pub use counted::{of_dataset, of_file, of_prior};
pub use reference::{Comparison, Reference, RuleScores, compare};
pub use tally::CodeLink;
pub(crate) use tally::Tally;

/// What the strength of a link is. Another way to find links is another variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// The mean probability of an edge, of a run that predicts edges.
    Probability,
    /// The mean attention of a run's last block, of both directions.
    Attention,
    /// The mean of P, of both directions, where a run has P in place of attention.
    Prior,
    /// The mean of p(effect|cause) and p(cause|effect).
    Conditional,
    /// How strongly the cause leads to the effect beside other causes: a noisy-or.
    Explained,
    /// The mean chance that the cause led to the effect, given all of the encounter.
    Posterior,
    /// How many standard deviations the two are together more often than by chance.
    Association,
}

impl Strength {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Strength::Probability => "probability",
            Strength::Attention => "attention",
            Strength::Prior => "prior",
            Strength::Conditional => "conditional",
            Strength::Explained => "explained",
            Strength::Posterior => "posterior",
            Strength::Association => "association",
        }
    }
}

impl From<LayerKind> for Strength {
    fn from(kind: LayerKind) -> Self {
        match kind {
            LayerKind::Probability => Strength::Probability,
            LayerKind::Attention => Strength::Attention,
            LayerKind::Prior => Strength::Prior,
        }
    }
}

impl From<Cells> for Strength {
    fn from(cells: Cells) -> Self {
        match cells {
            Cells::Conditional => Strength::Conditional,
            Cells::Explained => Strength::Explained,
            Cells::Posterior => Strength::Posterior,
            Cells::Association => Strength::Association,
        }
    }
}

/// A link between two codes that occur together.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// The diagnosis, or the treatment of a lab.
    pub cause: (CodeKind, u32),
    /// The treatment, or the lab.
    pub effect: (CodeKind, u32),
    /// How strong it is.
    pub strength: f64,
    /// The 95 % interval of the strength: over subjects where a model was asked, over encounters where they
    /// were counted. `None` where it is not known.
    pub interval: Option<[f64; 2]>,
    /// From the cause to the effect: p(effect|cause), or what the cause gives to the effect. The strength
    /// itself where there is one direction only.
    pub forward: f64,
    /// From the effect to the cause, if that is something else.
    pub backward: Option<f64>,
    /// How many encounters have both codes.
    pub encounters: u64,
    /// In how many of them true edges are known; `None` where that is not told.
    pub known: Option<u64>,
    /// In how many of these the two are connected, if any is known.
    pub truly: Option<u64>,
}

/// Which links are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Pairs that fewer encounters have are left out: their strengths are mostly chance.
    pub min_support: u64,
    /// Pairs and counts of fewer encounters are left out, and what gives such a count by subtraction, unless
    /// it is 0 or 1: someone could be recognised by them.
    pub min_cell: u64,
    /// How many of each kind are listed, the strongest; all if nothing is said.
    pub top: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { min_support: 5, min_cell: 0, top: None }
    }
}

/// Links over many encounters: those of diagnoses with treatments, then those of treatments with labs, the
/// strongest first.
#[derive(Debug, Clone)]
pub struct Links {
    /// What their strengths are.
    pub strength: Strength,
    /// The links.
    pub links: Vec<Link>,
    /// The codes that they are between.
    pub vocabulary: Vocabulary,
    /// Over how many encounters; `None` where a table of counts does not say.
    pub encounters: Option<u64>,
    /// How many encounters a run could not be asked about.
    pub left_out: u64,
    /// Codes that the run does not know.
    pub unseen: Unseen,
}

/// The links that a run's model finds in encounters of a dataset: by the probability of edges, if that is
/// what it predicts, and by the attention of its last block otherwise. The job is told how many encounters
/// are done.
///
/// # Errors
/// If the run has no model, or one that says nothing about pairs of codes, the dataset does not go with it or
/// cannot be read, or the job is stopped.
pub fn of_run(
    run: &Run,
    dataset: &Dataset,
    which: Which,
    settings: &Settings,
    job: &Job<'_, u64>,
) -> Result<Links> {
    let mut tally = Tally::default();
    let seen = each_layer(run, dataset, which, job, |seen, index| {
        tally.add(seen.encounter, seen.hidden, seen.adjacency.as_deref(), seen.layer, index);
    })?;
    let rows = run.embedding_rows();
    let code = |index: u32| rows.code_at(index + 1).expect("what was tallied are codes");
    let links = tally.pairs(settings.min_support, settings.min_cell, code);
    Ok(Links {
        strength: seen.strength,
        links: sorted(links, settings.top),
        vocabulary: run.vocabulary().clone(),
        encounters: Some(seen.encounters),
        left_out: seen.left_out,
        unseen: seen.unseen,
    })
}

/// What a run's model said of the pairs of one encounter.
struct Seen<'s> {
    encounter: &'s Encounter,
    /// The node that the model did not see.
    hidden: Option<usize>,
    adjacency: Option<Vec<bool>>,
    layer: &'s Layer,
}

/// What was seen of a dataset.
struct SeenAll {
    strength: Strength,
    encounters: u64,
    left_out: u64,
    unseen: Unseen,
}

/// Asks the model of a run about encounters, and tells what it says of the pairs of each: its last layer.
/// `each` also gets the index of a code among all codes.
fn each_layer(
    run: &Run,
    dataset: &Dataset,
    which: Which,
    job: &Job<'_, u64>,
    mut each: impl FnMut(Seen<'_>, &dyn Fn(CodeKind, u32) -> u32),
) -> Result<SeenAll> {
    let explainer = Explainer::new(run)?;
    let predictor = explainer.predictor();
    check_model(predictor)?;
    predictor.check_given(dataset)?;
    dataset.check_hashes(&job.inner(|_| None))?;
    let mut reader = Reader::new(run, dataset, which)?;
    let (mut encounters, mut strength) = (0, None);
    let index = |kind: CodeKind, id: u32| explainer.code_index(kind, id);
    let can_ask = |encounter: &_, _: Option<&_>| predictor.can_ask(encounter);
    let left_out = in_rounds(predictor, &mut reader, can_ask, |samples| {
        for some in samples.chunks(LOOKED_AT) {
            for inferred in evaluate::infer(predictor, some, true)? {
                let encounter = inferred.sample.encounter();
                let nodes = NodeRanges::of(encounter).len();
                let layers = explainer.layers(nodes, inferred.attentions, &inferred.logits);
                let Some(layer) = layers.last() else { continue };
                strength = Some(layer.kind.into());
                let (hidden, adjacency) = (hidden_node(&inferred.sample), graph::adjacency(encounter));
                each(Seen { encounter, hidden, adjacency, layer }, &index);
            }
        }
        encounters += samples.len() as u64;
        job.advance(encounters)
    })?;
    match strength {
        Some(strength) => Ok(SeenAll { strength, encounters, left_out, unseen: reader.unseen() }),
        None => Err(predictor.question().no_answers(which.name())),
    }
}

/// Refuses a model that says nothing about pairs of codes.
fn check_model(predictor: &Predictor<'_>) -> Result<()> {
    let config: &Config = predictor.model().config();
    match config.mixes() || predictor.question().reads_edges() {
        true => Ok(()),
        false => {
            let allowed = "a model with attention, or one of a run that predicts edges";
            Err(Error::setting("model", config.name(), allowed))
        }
    }
}

/// Links of each kind, the strongest first, as many as are wanted.
fn sorted(mut links: Vec<Link>, top: Option<usize>) -> Vec<Link> {
    let codes = |link: &Link| (link.cause, link.effect);
    links.sort_unstable_by(|a, b| {
        let strength = b.strength.total_cmp(&a.strength);
        a.cause.0.cmp(&b.cause.0).then(strength).then(codes(a).cmp(&codes(b)))
    });
    let kinds = links.into_iter().chunk_by(|link| link.cause.0);
    kinds.into_iter().flat_map(|(_, of_kind)| of_kind.take(top.unwrap_or(usize::MAX))).collect()
}

impl Links {
    /// A code of a link.
    pub fn code(&self, (kind, id): (CodeKind, u32)) -> &Code {
        &self.vocabulary[kind][id as usize]
    }

    /// Writes a row per link as Parquet, CSV or JSON lines: `kind` (`diagnosis-treatment` or
    /// `treatment-lab`), `cause`, `cause_description`, `effect`, `effect_description`, `strength`, `low`,
    /// `high`, `forward`, `backward`, `encounters`, `edges_known`, `edges`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write<'a>(&self, out: impl Into<Target<'a>>) -> Result<()> {
        let rows = self.rows();
        let mut file = RowFile::create(&out.into(), &rows.schema())?;
        file.write(&rows)?;
        file.finish()
    }

    fn rows(&self) -> RecordBatch {
        let links = &self.links;
        let kinds = links.iter().map(|link| format!("{}-{}", link.cause.0.name(), link.effect.0.name()));
        type End = fn(&Link) -> (CodeKind, u32);
        let text = |end: End| -> ArrayRef {
            let texts = links.iter().map(|link| self.code(end(link)).code.as_str());
            Arc::new(StringArray::from_iter_values(texts))
        };
        let description = |end: End| -> ArrayRef {
            let texts = links.iter().map(|link| self.code(end(link)).description.as_deref());
            Arc::new(texts.collect::<StringArray>())
        };
        let number = |of: &dyn Fn(&Link) -> Option<f64>| -> ArrayRef {
            Arc::new(links.iter().map(of).collect::<Float64Array>())
        };
        let count = |of: &dyn Fn(&Link) -> Option<u64>| -> ArrayRef {
            let count = |link: &Link| of(link).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
            Arc::new(links.iter().map(count).collect::<UInt32Array>())
        };
        let [cause, effect]: [End; 2] = [|link| link.cause, |link| link.effect];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(kinds)),
            text(cause),
            description(cause),
            text(effect),
            description(effect),
            number(&|link| Some(link.strength)),
            number(&|link| link.interval.map(|[low, _]| low)),
            number(&|link| link.interval.map(|[_, high]| high)),
            number(&|link| Some(link.forward)),
            number(&|link| link.backward),
            count(&|link| Some(link.encounters)),
            count(&|link| link.known),
            count(&|link| link.truly),
        ];
        RecordBatch::try_new(Arc::new(schema()), columns).expect("the columns are those of the schema")
    }
}

fn schema() -> Schema {
    let text = |name: &str| Field::new(name, DataType::Utf8, name.ends_with("description"));
    let number = |name: &str, is_optional| Field::new(name, DataType::Float64, is_optional);
    let count = |name: &str, is_optional| Field::new(name, DataType::UInt32, is_optional);
    let mut fields: Vec<Field> =
        ["kind", "cause", "cause_description", "effect", "effect_description"].map(text).into();
    fields.extend([number("strength", false), number("low", true), number("high", true)]);
    fields.extend([number("forward", false), number("backward", true)]);
    fields.extend([count("encounters", false), count("edges_known", true), count("edges", true)]);
    Schema::new(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(cause: (CodeKind, u32), strength: f64) -> Link {
        let effect = match cause.0 {
            CodeKind::Treatment => CodeKind::Lab,
            CodeKind::Context | CodeKind::Diagnosis | CodeKind::Lab => CodeKind::Treatment,
        };
        Link {
            cause,
            effect: (effect, 0),
            strength,
            interval: None,
            forward: strength,
            backward: None,
            encounters: 9,
            known: Some(0),
            truly: None,
        }
    }

    #[test]
    fn links_are_sorted_by_kind_then_by_strength() {
        use CodeKind::{Diagnosis, Treatment};
        let links = [
            link((Treatment, 0), 0.9),
            link((Diagnosis, 1), 0.5),
            link((Diagnosis, 2), 0.7),
            link((Diagnosis, 0), 0.5),
            link((Treatment, 1), 0.2),
        ];
        let of = |top| sorted(links.to_vec(), top).iter().map(|link| link.cause).collect::<Vec<_>>();
        let all = [(Diagnosis, 2), (Diagnosis, 0), (Diagnosis, 1), (Treatment, 0), (Treatment, 1)];
        assert_eq!(of(None), all);
        assert_eq!(of(Some(1)), [(Diagnosis, 2), (Treatment, 0)], "of each kind");
    }
}
