//! What can be wrong with a request. A message tells positions and limits, never a value of the request.

use std::fmt;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::shape::Refusal;

/// An encounter of a request, or one of its earlier visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) index: usize,
    pub(crate) visit: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "encounters[{}]", self.index)?;
        self.visit.map_or(Ok(()), |visit| write!(f, ".visits[{visit}]"))
    }
}

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    #[error("there is nothing at this path")]
    NotFound,
    #[error("this path does not have this method")]
    Method,
    #[error("the header Host names another machine")]
    Host,
    #[error("the token is missing or wrong")]
    Token,
    #[error("the body is not declared as JSON")]
    ContentType,
    #[error("the body has more than {most} bytes")]
    TooLarge { most: usize },
    #[error("the body did not arrive")]
    CutOff,
    #[error("the body did not arrive in time")]
    Slow,
    #[error("the body is not JSON: line {line}, column {column}")]
    NotJson { line: usize, column: usize },
    #[error("the body has another shape than expected: line {line}, column {column}")]
    Shape { line: usize, column: usize },
    #[error("there are more than {most} encounters")]
    TooManyEncounters { most: usize },
    #[error("{place} has more than {most} codes")]
    TooManyCodes { place: Place, most: usize },
    #[error("encounters[{index}] has more than {most} visits")]
    TooManyVisits { index: usize, most: usize },
    #[error("the matrices of the answer would have more than {most} numbers")]
    TooManyNumbers { most: usize },
    #[error("the answer would have more than {most} bytes")]
    LongAnswer { most: usize },
    #[error("{place} has a value, and the run does not know how values become codes")]
    NoBuckets { place: Place },
    #[error("{place}.{name} is neither a date nor a time")]
    NotATime { place: Place, name: &'static str },
    #[error("{place} ends before it begins")]
    EndBeforeStart { place: Place },
    #[error("encounters[{index}].visits: this run sees no earlier visits")]
    NoHistory { index: usize },
    #[error("{place} has no start, so the order of the visits is not known")]
    NoStart { place: Place },
    #[error("{place} does not begin before the encounter")]
    NotBefore { place: Place },
    #[error("encounters[{index}].visits[{first}] and visits[{second}] begin at the same moment")]
    SameStart { index: usize, first: usize, second: usize },
    #[error("encounters[{index}] has no code that may be hidden and that the run knows")]
    NothingToHide { index: usize },
    #[error("encounters[{index}].hide is none of the codes that may be hidden and that the run knows")]
    NotThereToHide { index: usize },
    #[error("encounters[{index}].hide: the task of this run hides nothing")]
    HidesNothing { index: usize },
    #[error("the model of this run has no vectors")]
    NoVectors,
    #[error("too many requests at the moment")]
    Busy,
    #[error("the answer took too long")]
    Late,
    #[error("the model's prediction is NaN or infinite")]
    NoAnswer,
    #[error("the server failed to answer")]
    Broken,
}

impl Problem {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Problem::NotFound => StatusCode::NOT_FOUND,
            Problem::Method => StatusCode::METHOD_NOT_ALLOWED,
            Problem::Host => StatusCode::MISDIRECTED_REQUEST,
            Problem::Token => StatusCode::UNAUTHORIZED,
            Problem::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Problem::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Problem::CutOff | Problem::NotJson { .. } => StatusCode::BAD_REQUEST,
            Problem::Slow => StatusCode::REQUEST_TIMEOUT,
            Problem::Shape { .. }
            | Problem::TooManyEncounters { .. }
            | Problem::TooManyCodes { .. }
            | Problem::TooManyNumbers { .. }
            | Problem::LongAnswer { .. }
            | Problem::TooManyVisits { .. }
            | Problem::NoBuckets { .. }
            | Problem::NotATime { .. }
            | Problem::EndBeforeStart { .. }
            | Problem::NoHistory { .. }
            | Problem::NoStart { .. }
            | Problem::NotBefore { .. }
            | Problem::SameStart { .. }
            | Problem::NothingToHide { .. }
            | Problem::NotThereToHide { .. }
            | Problem::HidesNothing { .. }
            | Problem::NoVectors => StatusCode::UNPROCESSABLE_ENTITY,
            Problem::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Problem::Late => StatusCode::GATEWAY_TIMEOUT,
            Problem::NoAnswer | Problem::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn hint(self) -> &'static str {
        match self {
            Problem::NotFound | Problem::Method => "GET /openapi.json lists what there is",
            Problem::Host => {
                "use localhost, 127.0.0.1 or [::1]: a server without a token answers to no other name"
            }
            Problem::Token => "send the header Authorization: Bearer TOKEN",
            Problem::ContentType => "send the header Content-Type: application/json",
            Problem::TooLarge { .. }
            | Problem::TooManyEncounters { .. }
            | Problem::LongAnswer { .. }
            | Problem::Late => "send fewer encounters at a time",
            Problem::CutOff | Problem::Slow | Problem::Broken => "send the request again",
            Problem::NotJson { .. } => "the body is one JSON object in UTF-8",
            Problem::Shape { .. } => {
                "the body is {\"encounters\": [{\"diagnosis\": [CODE], \"treatment\": [CODE], \"lab\": [CODE]}]}, as in /openapi.json"
            }
            Problem::TooManyCodes { .. } => "leave out the codes that matter least",
            Problem::NoVectors => "ask for predictions or explanations, or serve a run of another model",
            Problem::TooManyVisits { .. } => "leave out the oldest visits",
            Problem::NotATime { .. } => "give a time such as 2026-03-01 or 2026-03-01T08:30:00",
            Problem::EndBeforeStart { .. } => "give an end that is not before the start",
            Problem::NoHistory { .. } => {
                "leave \"visits\" away, or serve a run that was trained with history"
            }
            Problem::NoStart { .. } => "give \"start\" for the encounter and for each of its visits",
            Problem::NotBefore { .. } => "give earlier visits alone",
            Problem::SameStart { .. } => "give visits with different starts, or both as one visit",
            Problem::TooManyNumbers { .. } => "ask for explanations of fewer encounters at a time",
            Problem::NoBuckets { .. } => "give codes without values: those of the run's vocabulary",
            Problem::NothingToHide { .. } => {
                "give at least one of the run's vocabulary: a diagnosis, or for masked_code a treatment or a lab"
            }
            Problem::NotThereToHide { .. } => "hide one of them, or leave \"hide\" away",
            Problem::HidesNothing { .. } => {
                "leave \"hide\" away: it is for runs of masked_diagnosis and masked_code"
            }
            Problem::Busy => "wait a moment and send it again",
            Problem::NoAnswer => "train the model again with a lower learning rate",
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = json(&Refusal { error: self.to_string(), hint: self.hint().into() });
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        match self {
            Problem::Busy => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Problem::Token => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

/// An answer in JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Response {
    of_json(serde_json::to_vec(value).expect("answers have text keys"))
}

/// An answer whose text is JSON already.
pub(crate) fn of_json(text: impl IntoResponse) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
