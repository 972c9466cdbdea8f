//! The endpoints.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::error::Category;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoResponses, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{self, Envelope};
use crate::body::{self, Budget};
use crate::guard::{self, Admission};
use crate::metrics::Metrics;
use crate::model::Ask;
use crate::page::{self, Page};
use crate::problem::{Problem, json, of_json};
use crate::queue::Queue;
use crate::settings::{Limits, Log};
use crate::shape::{Embeddings, Explanations, Health, Model, Predictions, Refusal, Request};
use crate::words::{Question, Words};

/// Bytes of a body that are read in a tenth of a millisecond.
const SHORT: usize = 16 << 10;

/// What all requests share.
pub(crate) struct App {
    pub(crate) admission: Admission,
    pub(crate) limits: Limits,
    pub(crate) bodies: Arc<Budget>,
    pub(crate) answers: Arc<Budget>,
    pub(crate) words: Words,
    pub(crate) queue: Queue,
    pub(crate) model: Model,
    pub(crate) page: Option<Page>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: Option<Log>,
    /// Whether the server is about to end.
    pub(crate) ending: watch::Receiver<bool>,
}

pub(crate) type Shared = Arc<App>;

/// All routes, with what is done around each.
pub(crate) fn router(app: App) -> axum::Router {
    let app = Arc::new(app);
    let mut description = Description::openapi();
    if let (Admission::Token(_), Some(components)) = (&app.admission, &mut description.components) {
        let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        components.add_security_scheme("token", SecurityScheme::Http(token));
    }
    let (router, description) = OpenApiRouter::with_openapi(description)
        .routes(routes!(predict))
        .routes(routes!(explain))
        .routes(routes!(embed))
        .routes(routes!(model))
        .routes(routes!(healthz))
        .routes(routes!(metrics))
        .routes(routes!(openapi))
        .split_for_parts();
    let description = Arc::new(description);
    router
        .merge(page::routes())
        .layer(axum::Extension(description))
        .fallback(async || Problem::NotFound)
        .method_not_allowed_fallback(async || Problem::Method)
        .layer(axum::middleware::from_fn_with_state(app.clone(), guard::guard))
        .with_state(app)
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "gct",
        description = "A run of gct, asked about encounters that are given by their codes. \
                       Every error is an object with `error` and `hint`."
    ),
    components(schemas(Refusal))
)]
struct Description;

/// What can be wrong with a question.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it describes, and is never made")]
enum Refused {
    /// The body is not JSON, or did not arrive.
    #[response(status = 400)]
    NotJson(Refusal),
    /// The token is missing or wrong.
    #[response(status = 401)]
    Token(Refusal),
    /// The body did not arrive in time.
    #[response(status = 408)]
    Slow(Refusal),
    /// The body is too large.
    #[response(status = 413)]
    TooLarge(Refusal),
    /// The body is not declared as JSON.
    #[response(status = 415)]
    ContentType(Refusal),
    /// The header Host names another machine.
    #[response(status = 421)]
    Host(Refusal),
    /// The body has another shape than expected, or asks for too much.
    #[response(status = 422)]
    Shape(Refusal),
    /// The model's prediction is NaN or infinite.
    #[response(status = 500)]
    Broken(Refusal),
    /// Too much is being asked at the moment; the header Retry-After says when to come again.
    #[response(status = 503)]
    Busy(Refusal),
    /// The answer took too long.
    #[response(status = 504)]
    Late(Refusal),
}

/// Why a request without a body is not answered.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "it describes, and is never made")]
enum NotAdmitted {
    /// The token is missing or wrong.
    #[response(status = 401)]
    Token(Refusal),
    /// The header Host names another machine.
    #[response(status = 421)]
    Host(Refusal),
}

/// What the model predicts.
#[utoipa::path(post, path = "/v1/predict", request_body = Request, responses((status = 200, body = Predictions), Refused))]
async fn predict(State(app): State<Shared>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    app.answer(Ask::Predict, &headers, body).await
}

/// What the model believes: what it predicts, what each code does to that, and who attends to whom.
#[utoipa::path(post, path = "/v1/explain", request_body = Request,
               responses((status = 200, body = Explanations), Refused))]
async fn explain(State(app): State<Shared>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    app.answer(Ask::Explain, &headers, body).await
}

/// The vector of the visit.
#[utoipa::path(post, path = "/v1/embed", request_body = Request, responses((status = 200, body = Embeddings), Refused))]
async fn embed(State(app): State<Shared>, headers: HeaderMap, body: Body) -> Result<Response, Problem> {
    app.answer(Ask::Embed, &headers, body).await
}

/// What is served.
#[utoipa::path(get, path = "/v1/model", responses((status = 200, body = Model), NotAdmitted))]
async fn model(State(app): State<Shared>) -> Response {
    json(&app.model)
}

/// Whether the server lives. It needs no token.
#[utoipa::path(get, path = "/healthz", responses((status = 200, body = Health), NotAdmitted))]
async fn healthz() -> Response {
    json(&Health { status: "ok".into() })
}

/// What was counted, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"), NotAdmitted)
)]
async fn metrics(State(app): State<Shared>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.text()).into_response()
}

/// This description.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, body = Object), NotAdmitted))]
async fn openapi(description: axum::Extension<Arc<utoipa::openapi::OpenApi>>) -> Response {
    json(description.0.as_ref())
}

impl App {
    async fn answer(&self, ask: Ask, headers: &HeaderMap, body: Body) -> Result<Response, Problem> {
        let deadline = Instant::now() + self.limits.request;
        if !is_json(headers) {
            return Err(Problem::ContentType);
        }
        let reading = body::read(body, self.limits.body, &self.bodies);
        let (text, _share) = timeout_at(deadline, reading).await.map_err(|_| Problem::Slow)??;
        let questions = work(text.len() <= SHORT, || self.questions(ask, &text))?;
        drop(text);
        let unknown = questions.iter().map(|question| question.unknown.len()).sum::<usize>();
        self.metrics.unknown_codes.inc_by(unknown as u64);
        let asking = self.queue.ask(ask, questions, envelope(ask));
        let told = timeout_at(deadline, asking).await.map_err(|_| Problem::Late)??;
        Ok(of_json(answer::held(told, &self.answers)?))
    }

    fn questions(&self, ask: Ask, text: &[u8]) -> Result<Vec<Question>, Problem> {
        let request: Request<'_> = serde_json::from_slice(text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            match error.classify() {
                Category::Data => Problem::Shape { line, column },
                _ => Problem::NotJson { line, column },
            }
        })?;
        let most = self.limits.encounters;
        if request.encounters.len() > most {
            return Err(Problem::TooManyEncounters { most });
        }
        let asked = request.encounters.into_iter().enumerate();
        let questions: Vec<_> =
            asked.map(|(index, one)| self.words.question(index, one)).collect::<Result<_, _>>()?;
        if ask == Ask::Explain {
            let pairs: usize = questions.iter().map(|question| question.nodes().pow(2)).sum();
            let numbers = pairs * self.model.layers.len();
            if numbers > self.limits.numbers {
                return Err(Problem::TooManyNumbers { most: self.limits.numbers });
            }
        }
        Ok(questions)
    }
}

/// Does what is quick at once. The rest may take a while, and others want this thread: they get another,
/// which takes a while too.
fn work<T>(is_quick: bool, what: impl FnOnce() -> T) -> T {
    if is_quick { what() } else { tokio::task::block_in_place(what) }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// What stands around the answers: they are the list in [`Predictions`], [`Explanations`] or [`Embeddings`].
fn envelope(ask: Ask) -> Envelope {
    match ask {
        Ask::Predict => ["{\"predictions\":[", "]}"],
        Ask::Explain => ["{\"explanations\":[", "]}"],
        Ask::Embed => ["{\"embeddings\":[", "]}"],
    }
}
