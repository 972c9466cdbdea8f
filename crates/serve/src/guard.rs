//! Around every request: who may ask, which headers answers have, what is logged and counted.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::page::POLICY;
use crate::problem::Problem;
use crate::routes::{App, Shared};
use crate::settings::Token;

/// Whom the server answers.
pub(crate) enum Admission {
    /// Whoever has the token.
    Token(Token),
    /// Programs of this machine. Browsers of this machine too, but not for pages of others: such a page can
    /// have its name point to this machine, and then the header `Host` has that name.
    Local(IpAddr),
}

impl Admission {
    fn check(&self, path: &str, headers: &HeaderMap) -> Result<(), Problem> {
        match self {
            // The page asks for the token itself, and whether the server lives is no secret.
            Admission::Token(_) if ["/", "/healthz"].contains(&path) => Ok(()),
            Admission::Token(token) => match only(headers, header::AUTHORIZATION) {
                Some(value) if token.is_in(value.as_bytes()) => Ok(()),
                _ => Err(Problem::Token),
            },
            Admission::Local(listens) => match only(headers, header::HOST) {
                Some(host) if is_local(host.as_bytes(), *listens) => Ok(()),
                _ => Err(Problem::Host),
            },
        }
    }
}

/// The value of a header that is there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Whether a header `Host` names this machine, with any port.
fn is_local(host: &[u8], listens: IpAddr) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let (name, port) = match host.rsplit_once(':') {
        // The last part of an address of IP version 6.
        Some((_, end)) if end.ends_with(']') => (host, "0"),
        Some((name, port)) => (name, port),
        None => (host, "0"),
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_ours =
        |address: IpAddr| address == listens || ["127.0.0.1", "::1"].contains(&&*address.to_string());
    port.bytes().all(|byte| byte.is_ascii_digit())
        && (name.eq_ignore_ascii_case("localhost") || address.parse().is_ok_and(is_ours))
}

/// What is done around every request.
pub(crate) async fn guard(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("other", |path| path.as_str()).to_owned();
    let method = name_of(request.method());
    let mut response = match app.admission.check(request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    add_headers(response.headers_mut());
    if *app.ending.borrow() {
        // The client hears of it before the connection is closed.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    note(&app, method, &route, response.status().as_u16(), started);
    response
}

fn note(app: &App, method: &str, route: &str, status: u16, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    app.metrics.answered(route, status, seconds);
    if let Some(log) = &app.log {
        log(&format!("{method} {route} {status} {:.1} ms", 1e3 * seconds));
    }
}

/// A method that we know: any other is a word of the client.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        _ => "OTHER",
    }
}

fn add_headers(headers: &mut HeaderMap) {
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Answers are about patients.
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        let listens: IpAddr = "127.0.0.5".parse().unwrap();
        for name in
            ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:8080", "127.0.0.5:1"]
        {
            assert!(is_local(name.as_bytes(), listens), "{name}");
        }
        for name in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io:80",
            "127.0.0.2",
            "[::2]:80",
            "a@localhost",
            "localhost:80x",
            "0.0.0.0",
            "localhost,evil",
            "[::1",
        ] {
            assert!(!is_local(name.as_bytes(), listens), "{name}");
        }
    }
}
