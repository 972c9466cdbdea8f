//! The page for a browser: the report on a run, alive. It is optional; without it there is a line that says where the API is.

use axum::extract::State;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::problem::Problem;
use crate::routes::{App, Shared};

/// What the page consists of.
pub struct Page {
    /// The text of `/`.
    pub html: String,
    /// The header `Content-Security-Policy` that goes with it.
    pub policy: String,
    /// The JSON of `/page/report.json`.
    pub report: Vec<u8>,
    /// The JSON of `/page/runs/INDEX/encounters/NUMBER`; `None` if there is no such run or encounter. It may take its time.
    pub explanation: Box<dyn Fn(usize, usize) -> Option<Vec<u8>> + Send + Sync>,
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
        None => (PLACEHOLDER.to_owned(), POLICY.to_owned()),
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
    place: Result<axum::extract::Path<(usize, usize)>, PathRejection>,
) -> Result<Response, Problem> {
    let axum::extract::Path((index, number)) = place.map_err(|_| Problem::NotFound)?;
    let explain = move |app: &App| (app.page.as_ref()?.explanation)(index, number);
    let text = tokio::task::spawn_blocking(move || explain(&app)).await.map_err(|_| Problem::Broken)?;
    Ok(of_json(text.ok_or(Problem::NotFound)?))
}

fn of_json(text: Vec<u8>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
