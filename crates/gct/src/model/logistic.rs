//! Logistic regression on which codes an encounter has: the baseline that reviewers ask for. It is not in the
//! paper.
//!
//! ```text
//! logit of a label = b + sum over the codes c of the encounter of w(c)
//! minimised: C * sum over encounters of their cross entropy + 1/2 * sum over codes of w(c)^2
//! ```
//!
//! | symbol | parameter | shape |
//! |---|---|---|
//! | b of each label | row 0 of `embedding`, that of the visit, which every encounter has once | `[labels]` |
//! | w(c) of each label | the row of c in `embedding` | `[labels]` |
//!
//! Diagnoses, treatments, labs and context are codes alike. b is not penalised, and labels are fitted one by
//! one: it is what scikit-learn's `LogisticRegression(C=C)` makes of a column of zeros and ones for each
//! code. There is a fit to convergence for each C (`strengths.rs`), and validation chooses among them.

use gct_kernels::engine::Engine;
use serde::{Deserialize, Serialize};

use super::NodeStates;
use crate::error::{Error, Result};
use crate::question::NodeVectors;

/// More values of C than anybody tries.
const MOST_VALUES: usize = 1000;

/// Settings of logistic regression.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogisticConfig {
    /// The values of C that are tried, in this order: the weight of the encounters beside the penalty, so a
    /// small C is a strong penalty.
    pub c: Vec<f64>,
}

impl Default for LogisticConfig {
    fn default() -> Self {
        LogisticConfig { c: vec![1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0] }
    }
}

impl LogisticConfig {
    pub(super) fn check(&self) -> Result<()> {
        if !(1..=MOST_VALUES).contains(&self.c.len()) {
            let found = format!("{} values", self.c.len());
            return Err(Error::setting("c", found, &format!("from 1 to {MOST_VALUES} values")));
        }
        match self.c.iter().find(|c| !(1e-9..=1e9).contains(*c)) {
            None => Ok(()),
            Some(c) => Err(Error::setting("c", c, "numbers from 1e-9 to 1e9")),
        }
    }
}

/// The weights of codes are their vectors, and their sum over an encounter is its logits.
pub(super) fn forward<E: Engine>(engine: &mut E, nodes: E::Matrix) -> NodeStates<E> {
    let visits = engine.sum(&nodes);
    NodeStates { vectors: NodeVectors { nodes, visits }, attentions: Vec::new() }
}
