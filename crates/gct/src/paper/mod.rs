//! What the paper reports: counts of its data (Table 1), metrics (Tables 2 to 5, 7 and 8) and hyperparameters
//! (Table 6).

mod hyperparameters;
mod metrics;

pub use hyperparameters::Hyperparameters;
pub use metrics::{Reported, metric};

/// A row of Table 1: what it counts, on synthetic data, on eICU.
pub type Count = (&'static str, &'static str, Option<&'static str>);

/// Table 1, in the order in which statistics of a dataset are listed.
pub const COUNTS: [Count; 7] = [
    ("encounters", "50,000", Some("41,026")),
    ("diagnosis codes", "1,000", Some("3,093")),
    ("treatment codes", "1,000", Some("2,132")),
    ("lab codes", "1,000", None),
    ("diagnoses per encounter", "7.93", Some("7.70")),
    ("treatments per encounter", "14.59", Some("5.03")),
    ("labs per encounter", "21.31", None),
];
