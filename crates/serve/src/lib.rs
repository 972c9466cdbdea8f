//! A run as an HTTP API: `gct serve`.
//!
//! A few encounters are asked about where they arrive. Larger requests wait in a bounded queue; one thread
//! asks the model about them on all cores, about many small requests at once and about large ones in parts,
//! and hands the answers back.
//!
//! | file | what it holds |
//! |---|---|
//! | `settings` | addresses, limits, the token |
//! | `shape` | what goes over the wire, and from which the description in `/openapi.json` is made |
//! | `problem` | what can be wrong with a request |
//! | `words` | codes as text to encounters in numbers |
//! | `model` | the model, asked from any thread |
//! | `queue` | what is asked at once, and what waits for its turn |
//! | `body` | request bodies, in bounded memory |
//! | `answer` | answers, in bounded memory |
//! | `guard` | who may ask; headers, log lines and measurements of every answer |
//! | `routes` | the endpoints |
//! | `page` | the page for a browser |
//! | `metrics` | what is counted |
//! | `server` | connections, from the first to the last |
//!
//! No message, log line or measurement contains a value of a request: positions and counts are enough.

mod answer;
mod body;
mod error;
mod guard;
mod metrics;
mod model;
mod page;
mod problem;
mod queue;
mod routes;
mod server;
mod settings;
pub mod shape;
mod words;

pub use error::{Error, Result};
pub use page::Page;
pub use server::{Bound, Server};
pub use settings::{Limits, Log, Settings, Token};
