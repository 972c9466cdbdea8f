//! The nouns of the library. Identifiers of people and encounters never print themselves: their `Debug` is
//! redacted and they have no `Display`, so that none can slip into a message or a log.

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

/// The kinds of codes below the visit: context, which the paper does not have, then those of its hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeKind {
    /// What is known of the patient and the visit: age, sex, the way of admission. Few data have it.
    Context,
    /// Why the patient came.
    Diagnosis,
    /// What was ordered for it: medications and procedures.
    Treatment,
    /// What a treatment measured, with its value bucketed.
    Lab,
}

impl CodeKind {
    /// All kinds, from the visit downwards.
    pub const ALL: [CodeKind; 4] =
        [CodeKind::Context, CodeKind::Diagnosis, CodeKind::Treatment, CodeKind::Lab];

    /// The kinds of the paper, which has no context.
    pub const OF_PAPER: [CodeKind; 3] = [CodeKind::Diagnosis, CodeKind::Treatment, CodeKind::Lab];

    /// The kind's name in files, settings and messages.
    pub fn name(self) -> &'static str {
        match self {
            CodeKind::Context => "context",
            CodeKind::Diagnosis => "diagnosis",
            CodeKind::Treatment => "treatment",
            CodeKind::Lab => "lab",
        }
    }

    /// Whether a kind with so many codes has a row in tables: context has none where there is no context.
    pub fn is_shown(self, codes: u64) -> bool {
        self != CodeKind::Context || codes > 0
    }
}

/// One value for each kind of code. In files, that of context is left out where it is the default, so that
/// files of data without context do not speak of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, bound(serialize = "T: Serialize + Default + PartialEq"))]
pub struct PerKind<T> {
    /// The value for context.
    #[serde(default, skip_serializing_if = "is_default")]
    pub context: T,
    /// The value for diagnoses.
    pub diagnosis: T,
    /// The value for treatments.
    pub treatment: T,
    /// The value for labs.
    pub lab: T,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl<T> PerKind<T> {
    /// Makes the value of each kind.
    pub fn from_fn(mut make: impl FnMut(CodeKind) -> T) -> Self {
        PerKind {
            context: make(CodeKind::Context),
            diagnosis: make(CodeKind::Diagnosis),
            treatment: make(CodeKind::Treatment),
            lab: make(CodeKind::Lab),
        }
    }

    /// Like [`PerKind::from_fn`], when making a value can fail.
    pub fn try_from_fn<E>(mut make: impl FnMut(CodeKind) -> Result<T, E>) -> Result<Self, E> {
        Ok(PerKind {
            context: make(CodeKind::Context)?,
            diagnosis: make(CodeKind::Diagnosis)?,
            treatment: make(CodeKind::Treatment)?,
            lab: make(CodeKind::Lab)?,
        })
    }
}

impl<T> Index<CodeKind> for PerKind<T> {
    type Output = T;
    fn index(&self, kind: CodeKind) -> &T {
        match kind {
            CodeKind::Context => &self.context,
            CodeKind::Diagnosis => &self.diagnosis,
            CodeKind::Treatment => &self.treatment,
            CodeKind::Lab => &self.lab,
        }
    }
}

impl<T> IndexMut<CodeKind> for PerKind<T> {
    fn index_mut(&mut self, kind: CodeKind) -> &mut T {
        match kind {
            CodeKind::Context => &mut self.context,
            CodeKind::Diagnosis => &mut self.diagnosis,
            CodeKind::Treatment => &mut self.treatment,
            CodeKind::Lab => &mut self.lab,
        }
    }
}

/// A side of the split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SplitPart {
    /// What models and priors learn from: 8 of 10.
    Train,
    /// What settings are chosen by: 1 of 10.
    Validation,
    /// What is looked at once: 1 of 10.
    Test,
}

impl SplitPart {
    /// All parts.
    pub const ALL: [SplitPart; 3] = [SplitPart::Train, SplitPart::Validation, SplitPart::Test];

    /// The part's name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            SplitPart::Train => "train",
            SplitPart::Validation => "validation",
            SplitPart::Test => "test",
        }
    }
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            /// Takes the identifier as the source wrote it.
            pub fn new(id: impl Into<Box<str>>) -> Self {
                $name(id.into())
            }

            /// The identifier itself: for writing data out, never for a message.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(concat!(stringify!($name), "(redacted)"))
            }
        }
    };
}

identifier! {
    /// Who an encounter belongs to.
    SubjectId
}

identifier! {
    /// One encounter: a visit, an admission, a unit stay, a claim.
    EncounterId
}

/// A cause and its effect, as positions in the encounter's lists of the two kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// Position of the diagnosis (or treatment) that caused it.
    pub cause: u16,
    /// Position of the treatment (or lab) that was caused.
    pub effect: u16,
}

/// The true structure of an encounter. Every diagnosis and all context hang on the visit, so those
/// edges are not listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edges {
    /// Which diagnosis led to which treatment; a treatment may have several causes.
    pub diagnosis_treatment: Vec<Edge>,
    /// Which treatment led to which lab.
    pub treatment_lab: Vec<Edge>,
}

impl Edges {
    /// Whether all ends are among an encounter's codes.
    pub(crate) fn fit(&self, codes: &PerKind<Vec<u32>>) -> bool {
        let fit = |edges: &[Edge], causes: &[u32], effects: &[u32]| {
            let fits = |edge: &Edge| {
                usize::from(edge.cause) < causes.len() && usize::from(edge.effect) < effects.len()
            };
            edges.iter().all(fits)
        };
        fit(&self.diagnosis_treatment, &codes.diagnosis, &codes.treatment)
            && fit(&self.treatment_lab, &codes.treatment, &codes.lab)
    }
}

/// One encounter: what was recorded, and what is known about why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encounter {
    /// Its own identifier, unique in a dataset.
    pub id: EncounterId,
    /// Whose it is.
    pub subject: SubjectId,
    /// When it began, in microseconds since 1970-01-01, where known.
    pub start: Option<i64>,
    /// When it ended, in the same unit, where known. Never before its start.
    pub end: Option<i64>,
    /// The moment up to which its codes were taken, in microseconds since 1970-01-01, where the source has
    /// one.
    pub prediction_time: Option<i64>,
    /// The side of the split that the source put it on, where it says.
    pub part: Option<SplitPart>,
    /// The distinct codes of each kind, as ascending ids into the vocabulary of that kind.
    pub codes: PerKind<Vec<u32>>,
    /// The true edges, where the source knows them.
    pub edges: Option<Edges>,
    /// One value per label of the dataset, in its order; `None` where the label is unknown.
    pub labels: Vec<Option<bool>>,
}

impl Encounter {
    /// An encounter of which nothing but codes is known; they may come in any order and repeatedly. It has no
    /// identifiers: in a dataset it needs an `id` of its own and a `subject`.
    ///
    /// ```
    /// use gct::record::{Encounter, EncounterId, PerKind, SubjectId};
    ///
    /// let codes = PerKind { diagnosis: vec![7, 3, 7], treatment: vec![12], ..PerKind::default() };
    /// let encounter = Encounter::new(codes);
    /// assert_eq!(encounter.codes.diagnosis, [3, 7]);
    /// // What else is known is set field by field.
    /// let encounter = Encounter {
    ///     id: EncounterId::new("stay-17"),
    ///     subject: SubjectId::new("patient-4"),
    ///     labels: vec![Some(true)],
    ///     ..encounter
    /// };
    /// // Identifiers never print themselves.
    /// assert!(!format!("{encounter:?}").contains("patient-4"));
    /// ```
    pub fn new(mut codes: PerKind<Vec<u32>>) -> Self {
        for kind in CodeKind::ALL {
            codes[kind].sort_unstable();
            codes[kind].dedup();
        }
        Encounter {
            id: EncounterId::new(""),
            subject: SubjectId::new(""),
            start: None,
            end: None,
            prediction_time: None,
            part: None,
            codes,
            edges: None,
            labels: Vec::new(),
        }
    }
}

/// An entry of a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The code as the source writes it.
    pub code: String,
    /// What it means, where the source says.
    pub description: Option<String>,
    /// In how many encounters of the dataset it occurs.
    pub count: u64,
}

impl Code {
    /// The name and the value of a code of context: `sex` and `female` of `sex=female`. One without a value,
    /// such as `smoker`, has `yes`.
    pub(crate) fn name_and_value(&self) -> (&str, &str) {
        self.code.split_once('=').unwrap_or((&self.code, "yes"))
    }
}

/// The codes of each kind; a code's id is its position.
pub type Vocabulary = PerKind<Vec<Code>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_do_not_print_themselves() {
        let encounter = Encounter {
            id: EncounterId::new("stay-4711"),
            subject: SubjectId::new("patient-0815"),
            ..Encounter::new(PerKind::default())
        };
        let printed = format!("{encounter:?} {encounter:#?}");
        assert!(!printed.contains("4711") && !printed.contains("0815"), "{printed}");
        assert!(printed.contains("SubjectId(redacted)"));
    }
}
