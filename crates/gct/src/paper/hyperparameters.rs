//! The paper's Table 6.

use crate::question::{Labels, Question};

/// Hyperparameters of one task and one model.
#[derive(Debug, Clone, Copy)]
pub struct Hyperparameters {
    /// Learning rate of Adam.
    pub learning_rate: f64,
    /// Dropout inside of the MLP.
    pub mlp_dropout: f64,
    /// Dropout after the MLP.
    pub post_mlp_dropout: f64,
    /// Weight of GCT's KL terms, the paper's lambda.
    pub regularization: f64,
}

/// Columns of the paper's table.
const MODELS: [&str; 7] = ["gcn", "gcn_p", "gcn_random", "shallow", "deep", "transformer", "gct"];

/// A row of the paper's table: learning rates, dropout of the MLP, dropout after it; and GCT's lambda.
type Row = ([f64; 7], [f64; 7], [f64; 7], f64);

/// What the paper has no value for; the nearest model's is taken.
const NONE: f64 = f64::NAN;

const GRAPH_RECONSTRUCTION: Row = (
    [0.00045, 0.0006, 0.0003, 0.00025, NONE, 0.0007, 0.0005],
    [0.3, 0.01, 0.5, 0.2, NONE, 0.8, 0.3],
    [0.2, 0.02, 0.005, NONE, NONE, 0.001, 0.1],
    0.02,
);
const DIAGNOSIS_TREATMENT: Row = (
    [0.0001, 0.0001, 0.0001, 0.0002, 0.0008, 0.00015, 0.0001],
    [0.2, 0.3, 0.5, 0.02, 0.01, 0.5, 0.85],
    [0.65, 0.02, 0.4, NONE, 0.3, 0.01, 0.03],
    0.05,
);
const MASKED_DIAGNOSIS: Row = (
    [0.0003, 0.0007, 0.0002, 0.0007, 0.0004, 0.0003, 0.0001],
    [0.01, 0.8, 0.5, 0.08, 0.12, 0.4, 0.85],
    [0.88, 0.005, 0.5, NONE, 0.75, 0.5, 0.6],
    0.05,
);
const MASKED_DIAGNOSIS_EICU: Row = (
    [NONE, 0.0005, 0.0001, 0.0001, 0.00012, 0.0001, 0.0009],
    [NONE, 0.5, 0.3, 0.3, 0.4, 0.87, 0.5],
    [NONE, 0.5, 0.4, NONE, 0.45, 0.2, 0.03],
    50.0,
);
const READMISSION: Row = (
    [NONE, 0.00024, 0.0001, 0.0001, 0.00011, 0.0002, 0.00022],
    [NONE, 0.3, 0.7, 0.63, 0.05, 0.45, 0.08],
    [NONE, 0.1, 0.01, NONE, 0.33, 0.28, 0.024],
    0.1,
);
const MORTALITY: Row = (
    [NONE, 0.0003, 0.00013, 0.0001, 0.00015, 0.0006, 0.00011],
    [NONE, 0.85, 0.9, 0.25, 0.01, 0.88, 0.72],
    [NONE, 0.04, 0.01, NONE, 0.01, 0.2, 0.005],
    1.5,
);

impl Hyperparameters {
    /// Those of the paper. Other labels, and diagnoses of the next visit, take those of readmission;
    /// a hidden code of any kind those of a hidden diagnosis; GCN on
    /// eICU, which the paper does not have, takes GCN_P's; MiME takes Shallow's, and Logistic has none.
    pub fn of(question: &Question, model: &str, source: &str) -> Self {
        let (rates, mlp, post_mlp, regularization) = match question {
            Question::Edges => GRAPH_RECONSTRUCTION,
            Question::Labels(Labels::DiagnosisTreatment) => DIAGNOSIS_TREATMENT,
            Question::Labels(Labels::Readmission | Labels::Named(_) | Labels::Several(_)) => READMISSION,
            Question::Labels(Labels::Mortality) => MORTALITY,
            Question::HiddenDiagnosis | Question::HiddenCode if source == "eicu" => MASKED_DIAGNOSIS_EICU,
            Question::HiddenDiagnosis | Question::HiddenCode => MASKED_DIAGNOSIS,
            Question::NextDiagnoses(_) => READMISSION,
        };
        let column = |model: &str| MODELS.iter().position(|name| *name == model);
        let mut index = column(model).or_else(|| column("shallow")).unwrap_or_default();
        if rates[index].is_nan() {
            index = column("gcn_p").unwrap_or_default();
        }
        let post_mlp_dropout = if post_mlp[index].is_nan() { 0.0 } else { post_mlp[index] };
        Hyperparameters {
            learning_rate: rates[index],
            mlp_dropout: mlp[index],
            post_mlp_dropout,
            regularization,
        }
    }
}
