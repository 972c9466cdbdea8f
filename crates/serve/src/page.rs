//! The page for a browser: the report on a run, alive. It is optional; without it there is a line that says
//! where the API is.

use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use gct::dataset::Dataset;
use gct::infer::Which;
use gct::job::Job;
use gct::report::{self, Looked, Options};
use gct::run::Run;
use gct::sample::OwnedSample;
use tokio::time::{Instant, timeout_at};

use crate::answer;
use crate::model::Ask;
use crate::problem::{Problem, of_json};
use crate::routes::Shared;

/// What the page consists of.
pub struct Page {
    html: Bytes,
    policy: String,
    /// The JSON of `/page/report.json`.
    report: Bytes,
    /// Those that can be looked at, in the order of their numbers.
    encounters: Vec<(u64, OwnedSample)>,
}

impl Page {
    /// Looks at the encounters of a dataset. The job is told how many are done.
    ///
    /// # Errors
    /// If the run has no model, the dataset does not go with it or cannot be read, or the job is stopped.
    pub fn gather(
        run: &Run,
        dataset: &Dataset,
        which: Which,
        options: Options,
        job: &Job<'_, u64>,
    ) -> gct::Result<Self> {
        let name = run.settings().model.name().to_owned();
        let looked = [Looked { name, run, dataset, test_set: which.into() }];
        let mut report = report::gather(&looked, &Options { live: true, ..options }, job)?;
        let encounters = report.runs.iter_mut().flat_map(|run| std::mem::take(&mut run.kept)).collect();
        let report::Page { html, policy } = report::page();
        Ok(Page {
            html: html.into(),
            policy,
            report: serde_json::to_vec(&report).expect("a report has only text keys").into(),
            encounters,
        })
    }
}

/// What other answers than pages may load: nothing.
pub(crate) const POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

const PLACEHOLDER: &str = "<!doctype html>\n<html lang=\"en\"><title>gct</title>\n\
    <p>This is the API of a run of gct: <a href=\"openapi.json\">openapi.json</a> describes it.</p>\n</html>\n";

pub(crate) fn routes() -> axum::Router<Shared> {
    axum::Router::new()
        .route("/", get(html))
        .route("/page/report.json", get(report))
        .route("/page/runs/{index}/encounters/{number}", get(explanation))
}

async fn html(State(app): State<Shared>) -> Response {
    let (html, policy) = match &app.page {
        Some(page) => (page.html.clone(), page.policy.clone()),
        None => (Bytes::from_static(PLACEHOLDER.as_bytes()), POLICY.to_owned()),
    };
    let policy_header: HeaderName = header::CONTENT_SECURITY_POLICY;
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()), (policy_header, policy)], html)
        .into_response()
}

async fn report(State(app): State<Shared>) -> Result<Response, Problem> {
    let page = app.page.as_ref().ok_or(Problem::NotFound)?;
    Ok(of_json(page.report.clone()))
}

async fn explanation(
    State(app): State<Shared>,
    path: Result<axum::extract::Path<(usize, u64)>, PathRejection>,
) -> Result<Response, Problem> {
    let axum::extract::Path((index, number)) = path.map_err(|_| Problem::NotFound)?;
    let of_run = app.page.as_ref().filter(|_| index == 0).ok_or(Problem::NotFound)?;
    let position = of_run.encounters.binary_search_by_key(&number, |(number, _)| *number);
    let sample = &of_run.encounters[position.map_err(|_| Problem::NotFound)?].1;
    let question = app.words.known(sample);
    let deadline = Instant::now() + app.limits.request;
    let asking = app.queue.ask(Ask::Explain, vec![question], ["", ""]);
    let told = timeout_at(deadline, asking).await.map_err(|_| Problem::Late)??;
    Ok(of_json(answer::held(told, &app.answers)?))
}
