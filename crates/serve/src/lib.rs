//! A run as an HTTP API: `gct serve`.
//!
//! Requests wait in a bounded queue. One thread takes all that wait, asks the model about them at once, and hands the answers
//! back; so company makes it fast, and whoever is alone waits for nobody.
//!
//! | file | what it holds |
//! |---|---|
//! | `settings` | addresses, limits, the token |
//! | `shape` | what goes over the wire, and from which the description in `/openapi.json` is made |
//! | `problem` | what can be wrong with a request |
//! | `words` | codes as text to encounters in numbers |
//! | `queue` | the queue and the thread that asks the model |
//! | `body` | request bodies, in bounded memory |
//! | `guard` | who may ask; headers, log lines and measurements of every answer |
//! | `routes` | the endpoints |
//! | `page` | the page for a browser |
//! | `metrics` | what is counted |
//! | `server` | connections, from the first to the last |
//!
//! No message, log line or measurement contains a value of a request: positions and counts are enough.

mod body;
mod error;
mod guard;
mod metrics;
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
pub use server::Server;
pub use settings::{Limits, Log, Settings, Token};
