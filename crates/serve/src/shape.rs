//! What goes over the wire. The description in `/openapi.json` is made from these very types.

use std::borrow::Cow;

use gct::coding::Recorded;
use gct::graph::{self, NodeKind};
use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type};
use utoipa::{PartialSchema, ToSchema};

/// Encounters to ask about.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Request<'a> {
    /// In any order; answers come in the same.
    #[serde(borrow)]
    pub encounters: Vec<Encounter<'a>>,
}

/// An encounter, by its codes. It has no `Debug`: what is in it belongs into no message.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"diagnosis": ["D_1"], "treatment": ["T_3"], "lab": ["L_9"]}))]
pub struct Encounter<'a> {
    /// What is known of the patient and the visit, if the run learned from that.
    #[serde(borrow)]
    #[schema(value_type = Vec<CodeOrValue>)]
    pub context: Vec<Recorded<'a>>,
    /// Why the patient came.
    #[serde(borrow)]
    #[schema(value_type = Vec<String>)]
    pub diagnosis: Vec<Code<'a>>,
    /// What was ordered.
    #[serde(borrow)]
    #[schema(value_type = Vec<String>)]
    pub treatment: Vec<Code<'a>>,
    /// What was measured.
    #[serde(borrow)]
    #[schema(value_type = Vec<CodeOrValue>)]
    pub lab: Vec<Recorded<'a>>,
    /// For masked diagnosis: which of the diagnoses is hidden from the model; for masked code: which of the
    /// diagnoses, treatments and labs.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub hide: Option<Code<'a>>,
    /// When it began: `2026-03-01`, or `2026-03-01T08:30:00`. Earlier visits need it.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub start: Option<Code<'a>>,
    /// When it ended. No answer depends on it.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub end: Option<Code<'a>>,
    /// The moment up to which its codes are known; its start if it is not given.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub prediction_time: Option<Code<'a>>,
    /// For runs that see history: earlier visits of the patient, in any order.
    #[serde(borrow)]
    pub visits: Vec<Visit<'a>>,
}

/// An earlier visit of the patient, by its codes. It has no `Debug`: what is in it belongs into no message.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(example = json!({"start": "2026-01-20", "end": "2026-01-25T10:00:00", "diagnosis": ["D_1"]}))]
pub struct Visit<'a> {
    /// When it began: before the encounter, and at another moment than all other visits.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub start: Option<Code<'a>>,
    /// When it ended, where that is known. A visit that was not over when the encounter began is not seen.
    #[serde(borrow)]
    #[schema(value_type = Option<String>)]
    pub end: Option<Code<'a>>,
    /// What was known of the patient and the visit, if the run learned from that.
    #[serde(borrow)]
    #[schema(value_type = Vec<CodeOrValue>)]
    pub context: Vec<Recorded<'a>>,
    /// Why the patient came.
    #[serde(borrow)]
    #[schema(value_type = Vec<String>)]
    pub diagnosis: Vec<Code<'a>>,
    /// What was ordered.
    #[serde(borrow)]
    #[schema(value_type = Vec<String>)]
    pub treatment: Vec<Code<'a>>,
    /// What was measured.
    #[serde(borrow)]
    #[schema(value_type = Vec<CodeOrValue>)]
    pub lab: Vec<Recorded<'a>>,
}

/// A code, or one with a value, in the description.
struct CodeOrValue;

impl PartialSchema for CodeOrValue {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let number = ObjectBuilder::new().schema_type(SchemaType::from_iter([Type::Number, Type::Null]));
        let valued = ObjectBuilder::new()
            .property("code", text())
            .property("value", number)
            .required("code")
            .description(Some("A code with its value, which goes into a bucket of the run."));
        let either = OneOfBuilder::new().item(text()).item(valued);
        either.description(Some("A code as it is recorded, perhaps with a value.")).into()
    }
}

impl ToSchema for CodeOrValue {}

/// A code as it stands in the body; one with an escape in it is a text of its own.
#[derive(Serialize, Deserialize)]
pub struct Code<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl AsRef<str> for Code<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// What `/v1/predict` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Predictions {
    /// One for each encounter.
    pub predictions: Vec<Prediction>,
}

/// What the model predicts for an encounter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Prediction {
    /// The labels; or guesses of the hidden diagnosis; or the pairs of codes that are connected, the
    /// strongest first, at most 30.
    pub answers: Vec<Answer>,
    /// Codes that the run does not know, of the encounter and its earlier visits; they were left out.
    pub unknown: Vec<UnknownCode>,
    /// How many of the earlier visits of the request the model does not see: those that began more than
    /// `history.days` before the encounter, those that were not over when it began, and all but the latest
    /// `history.visits`; only if the run sees history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_seen: Option<usize>,
}

/// One thing that the model predicts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Answer {
    /// What: a label, a diagnosis, or two codes that are connected.
    pub what: String,
    /// How probable the model finds it.
    pub probability: f64,
    /// Whether it is so, where that is known: of a diagnosis that was hidden.
    #[schema(required = true)]
    pub truth: Option<bool>,
}

impl From<gct::question::Answer> for Answer {
    fn from(answer: gct::question::Answer) -> Self {
        let gct::question::Answer { what, probability, truth } = answer;
        Answer { what, probability, truth }
    }
}

/// A code that the run does not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UnknownCode {
    /// In which list it stood.
    #[schema(value_type = Kind)]
    pub kind: NodeKind,
    /// The code.
    pub code: String,
}

/// What `/v1/explain` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanations {
    /// One for each encounter.
    pub explanations: Vec<Explanation>,
}

/// What the model believes about an encounter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// The visit, then context, diagnoses, treatments and labs, each kind in the order of the run's
    /// vocabulary.
    pub nodes: Vec<Node>,
    /// Who attends to whom, from the input up; none if the model mixes nothing.
    pub layers: Vec<Layer>,
    /// The true edges, cause first, where they are known: not those of a list of codes.
    #[schema(required = true)]
    pub edges: Option<Vec<[usize; 2]>>,
    /// The node that was hidden from the model.
    #[schema(required = true)]
    pub hidden: Option<usize>,
    /// The earlier visits that the model sees, the latest first; only if the run sees history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<Vec<PastVisit>>,
    /// What it predicts.
    pub answers: Vec<Answer>,
    /// Why: what each code does to each of the answers, in their order. `null` for an encounter of more than
    /// 200 codes, which would be asked about once more for each, and where its earlier visits would make that
    /// take longer.
    #[schema(required = true)]
    pub attributions: Option<Vec<Attribution>>,
    /// What led to each treatment and each lab; only if the model is an explainer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Vec<Cause>>,
    /// Codes that the run does not know; they were left out.
    pub unknown: Vec<UnknownCode>,
    /// How many of the earlier visits of the request the model does not see: those that began more than
    /// `history.days` before the encounter, those that were not over when it began, and all but the latest
    /// `history.visits`; only if the run sees history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_seen: Option<usize>,
}

/// What probably led to a treatment or a lab. Nodes are indices of `nodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cause {
    /// The treatment or the lab.
    pub effect: usize,
    /// The diagnosis or the treatment that led to it most probably; `null` if there is none.
    #[schema(required = true)]
    pub cause: Option<usize>,
    /// How probable that is, among all that could have led to it.
    pub probability: f64,
    /// How probable it is that nothing in the encounter led to it.
    pub unexplained: f64,
}

impl From<gct::predict::Cause> for Cause {
    fn from(cause: gct::predict::Cause) -> Self {
        let gct::predict::Cause { effect, cause, probability, unexplained } = cause;
        Cause { effect, cause, probability, unexplained }
    }
}

/// Why an answer is what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attribution {
    /// What: the label, the diagnosis or the two codes of the answer.
    pub what: String,
    /// How probable the model finds it with all codes.
    pub probability: f64,
    /// What happens when a whole earlier visit is left out, the largest change of log-odds first; only if the
    /// run sees history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<Vec<VisitChange>>,
    /// What happens when one code is left out of one visit, the largest change of log-odds first.
    pub changes: Vec<Change>,
}

/// What happens to an answer when the model is asked again as if an earlier visit had never been recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct VisitChange {
    /// How many visits before the encounter, of those that are seen: 1 for the latest.
    pub visits_before: usize,
    /// Whole days from its start to that of the encounter, where times are known.
    #[schema(required = true)]
    pub days_before: Option<i64>,
    /// The probability without it.
    pub without: f64,
    /// The same minus the probability with it: negative if the visit speaks for the answer.
    pub change: f64,
    /// The change of the log-odds.
    pub log_odds_change: f64,
}

/// An earlier visit that the model sees.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PastVisit {
    /// How many visits before the encounter, of those that are seen: 1 for the latest.
    pub visits_before: usize,
    /// Whole days from its start to that of the encounter, where times are known.
    #[schema(required = true)]
    pub days_before: Option<i64>,
    /// Its codes: context, diagnoses, treatments and labs, each kind in the order of the run's vocabulary.
    pub codes: Vec<Node>,
}

/// What happens to an answer when the model is asked again about the encounter without a code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// The visit that the code is left out of, by how many visits before the encounter: 0 for the encounter
    /// itself. Only if the run sees history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits_before: Option<usize>,
    /// The index of the code in `nodes`; of an earlier visit, 1 more than that in its `codes`.
    pub node: usize,
    /// Its kind.
    #[schema(value_type = Kind)]
    pub kind: NodeKind,
    /// The code.
    pub code: String,
    /// What the code means, where the source says.
    #[schema(required = true)]
    pub description: Option<String>,
    /// The probability without it.
    pub without: f64,
    /// The same minus the probability with it: negative if the code speaks for the answer.
    pub change: f64,
    /// The change of the log-odds.
    pub log_odds_change: f64,
}

impl From<gct::predict::Attribution> for Attribution {
    fn from(attribution: gct::predict::Attribution) -> Self {
        let gct::predict::Attribution { what, probability, visits, changes, pairs: _ } = attribution;
        let visits = visits.map(|visits| visits.into_iter().map(Into::into).collect());
        Attribution { what, probability, visits, changes: changes.into_iter().map(Into::into).collect() }
    }
}

impl From<gct::predict::VisitChange> for VisitChange {
    fn from(change: gct::predict::VisitChange) -> Self {
        let gct::predict::VisitChange { visits_before, days_before, without, change, log_odds_change } =
            change;
        VisitChange { visits_before, days_before, without, change, log_odds_change }
    }
}

impl From<gct::predict::PastVisit> for PastVisit {
    fn from(visit: gct::predict::PastVisit) -> Self {
        let gct::predict::PastVisit { visits_before, id: _, days_before, codes } = visit;
        PastVisit { visits_before, days_before, codes: codes.into_iter().map(Into::into).collect() }
    }
}

impl From<gct::predict::PastCode> for Node {
    fn from(code: gct::predict::PastCode) -> Self {
        let gct::predict::PastCode { kind, code, description } = code;
        Node { kind, code, description }
    }
}

impl From<gct::predict::Change> for Change {
    fn from(change: gct::predict::Change) -> Self {
        let gct::predict::Change { visits_before, node, kind, code, description, .. } = change;
        let gct::predict::Change { without, change, log_odds_change, .. } = change;
        Change { visits_before, node, kind, code, description, without, change, log_odds_change }
    }
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Its kind.
    #[schema(value_type = Kind)]
    pub kind: NodeKind,
    /// Its code; `visit` for the visit.
    pub code: String,
    /// What the code means, where the source says.
    #[schema(required = true)]
    pub description: Option<String>,
}

/// The kinds of nodes in the description.
struct Kind;

impl PartialSchema for Kind {
    fn schema() -> RefOr<Schema> {
        one_of("Kinds of nodes.", NodeKind::ALL.map(NodeKind::name))
    }
}

impl ToSchema for Kind {}

/// A text that is one of some names.
fn one_of<const N: usize>(description: &str, names: [&'static str; N]) -> RefOr<Schema> {
    let text = ObjectBuilder::new().schema_type(Type::String).description(Some(description));
    text.enum_values(Some(names)).into()
}

/// Who attends to whom in one part of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Layer {
    /// Its name: `P`, `block 2`, `answer`.
    pub name: String,
    /// What its numbers are.
    #[schema(value_type = LayerKind)]
    pub kind: graph::LayerKind,
    /// A row for each node: what it gives to every node.
    pub matrix: Vec<Vec<f32>>,
}

/// The kinds of layers in the description.
struct LayerKind;

impl PartialSchema for LayerKind {
    fn schema() -> RefOr<Schema> {
        one_of("What the numbers of a layer are.", graph::LayerKind::ALL.map(graph::LayerKind::name))
    }
}

impl ToSchema for LayerKind {}

impl Layer {
    fn of(layer: graph::Layer, nodes: usize) -> Self {
        let graph::Layer { name, kind, matrix } = layer;
        Layer { name, kind, matrix: matrix.chunks(nodes).map(<[f32]>::to_vec).collect() }
    }
}

impl From<graph::Node> for Node {
    fn from(node: graph::Node) -> Self {
        let graph::Node { kind, code, description, hidden: _ } = node;
        Node { kind, code, description }
    }
}

impl Explanation {
    /// What a model believes, and why if that is known, beside codes that it does not know.
    pub(crate) fn of(
        explanation: gct::predict::Explanation,
        has_reasons: bool,
        unknown: Vec<UnknownCode>,
        not_seen: Option<usize>,
    ) -> Self {
        let (layers, structure) = (explanation.layers(), explanation.structure);
        let nodes = structure.nodes.len();
        Explanation {
            hidden: structure.hidden(),
            layers: layers.into_iter().map(|layer| Layer::of(layer, nodes)).collect(),
            edges: (structure.edges)
                .map(|edges| edges.into_iter().map(|(cause, effect)| [cause, effect]).collect()),
            visits: explanation.visits.map(|visits| visits.into_iter().map(Into::into).collect()),
            answers: explanation.answers.into_iter().map(Into::into).collect(),
            attributions: has_reasons.then(|| explanation.attributions.into_iter().map(Into::into).collect()),
            causes: explanation.causes.map(|causes| causes.into_iter().map(Into::into).collect()),
            unknown,
            not_seen,
            nodes: structure.nodes.into_iter().map(Into::into).collect(),
        }
    }
}

/// What `/v1/embed` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Embeddings {
    /// One for each encounter.
    pub embeddings: Vec<Embedding>,
}

/// The vector of a visit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Embedding {
    /// That of the visit alone: as many numbers as the model is wide.
    pub vector: Vec<f32>,
    /// That of the visit with the earlier ones that the model sees; only if the run sees history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Vec<f32>>,
    /// Codes that the run does not know; they were left out.
    pub unknown: Vec<UnknownCode>,
    /// How many of the earlier visits of the request the model does not see: those that began more than
    /// `history.days` before the encounter, those that were not over when it began, and all but the latest
    /// `history.visits`; only if the run sees history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_seen: Option<usize>,
}

/// What `/v1/model` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Model {
    /// The model's name in the paper.
    pub model: String,
    /// What it learned to do.
    pub task: String,
    /// The program that serves it.
    pub program: String,
    /// The labels that it predicts.
    pub labels: Vec<String>,
    /// How their probabilities are calibrated: `platt`, `isotonic`, or null if they are the model's own.
    pub calibrated: Option<String>,
    /// What it sees of earlier visits; not told if that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// The run whose weights its training began with; not told if they were random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_with: Option<BeganWith>,
    /// How many codes it knows.
    pub codes: Codes,
    /// Numbers per node, and per visit.
    pub width: usize,
    /// The layers of an explanation.
    pub layers: Vec<LayerName>,
}

/// A run whose weights a training began with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BeganWith {
    /// What it had learned to do.
    pub task: String,
    /// The SHA-256 of its weights.
    pub weights_sha256: String,
}

impl BeganWith {
    /// Of what a run has noted.
    pub fn of(init: &gct::run::InitEntry) -> Self {
        BeganWith { task: init.task.to_string(), weights_sha256: init.weights_sha256.clone() }
    }
}

/// What a model sees of earlier visits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct History {
    /// What makes one vector of those of the visits: `gru`, `cnn`, `attention`, or `bag` for all codes as one
    /// encounter.
    pub aggregator: String,
    /// Visits that are seen at most, the encounter among them: the latest.
    pub visits: usize,
    /// How many days before the encounter earlier visits may have begun; null for any number.
    #[schema(required = true)]
    pub days: Option<f64>,
    /// What the order of visits is taken from: `time`, which is needed then, or `recorded`.
    #[schema(value_type = Order)]
    pub order: gct::history::Order,
}

/// The orders of visits in the description.
struct Order;

impl PartialSchema for Order {
    fn schema() -> RefOr<Schema> {
        one_of("What the order of visits is taken from.", ["time", "recorded"])
    }
}

impl ToSchema for Order {}

impl History {
    /// What a run sees; `None` if that is nothing.
    pub(crate) fn of(history: &gct::history::History) -> Option<Self> {
        (!history.is_none()).then(|| History {
            aggregator: history.aggregator.name().into(),
            visits: history.visits,
            days: (history.days > 0.0).then_some(history.days),
            order: history.order,
        })
    }
}

/// How many codes of each kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Codes {
    /// Context; not told if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub context: usize,
    /// Diagnoses.
    pub diagnosis: usize,
    /// Treatments.
    pub treatment: usize,
    /// Labs.
    pub lab: usize,
}

fn is_zero(codes: &usize) -> bool {
    *codes == 0
}

/// A layer without its numbers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LayerName {
    /// Its name: `P`, `block 2`, `answer`.
    pub name: String,
    /// What its numbers are.
    #[schema(value_type = LayerKind)]
    pub kind: graph::LayerKind,
}

/// What `/healthz` answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`.
    pub status: String,
}

/// What every request that fails is answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refusal {
    /// What is wrong.
    pub error: String,
    /// What to do.
    pub hint: String,
}
