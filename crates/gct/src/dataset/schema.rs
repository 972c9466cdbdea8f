//! The columns of the two Parquet files.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, TimeUnit};

use crate::record::CodeKind;

pub(super) const ENCOUNTER_ID: &str = "encounter_id";
pub(super) const SUBJECT_ID: &str = "subject_id";
pub(super) const START: &str = "start";
/// Columns that are there only if the source knows of them.
pub(super) const END: &str = "end";
pub(super) const PREDICTION_TIME: &str = "prediction_time";
pub(super) const PART: &str = "part";

/// A column of true edges, and the kinds that it connects.
#[derive(Debug, Clone, Copy)]
pub(super) struct EdgeColumn {
    pub(super) name: &'static str,
    pub(super) cause: CodeKind,
    pub(super) effect: CodeKind,
}

pub(super) const DIAGNOSIS_TREATMENT: EdgeColumn =
    EdgeColumn { name: "diagnosis_treatment", cause: CodeKind::Diagnosis, effect: CodeKind::Treatment };
pub(super) const TREATMENT_LAB: EdgeColumn =
    EdgeColumn { name: "treatment_lab", cause: CodeKind::Treatment, effect: CodeKind::Lab };

impl EdgeColumn {
    /// An edge is a pair of code ids, under the names of the two kinds.
    pub(super) fn pair(self) -> Fields {
        Fields::from(vec![
            Field::new(self.cause.name(), DataType::UInt32, false),
            Field::new(self.effect.name(), DataType::UInt32, false),
        ])
    }

    pub(super) fn field(self) -> Field {
        Field::new(self.name, list_of(DataType::Struct(self.pair())), true)
    }
}

/// The element of a list, as the Parquet format names it.
pub(super) fn element(data_type: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", data_type, false))
}

fn list_of(data_type: DataType) -> DataType {
    DataType::List(element(data_type))
}

/// The column of a kind of code.
fn codes(kind: CodeKind) -> Field {
    Field::new(kind.name(), list_of(DataType::UInt32), false)
}

/// A column of moments, where known.
fn time(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Microsecond, None), true)
}

/// The columns that every dataset has.
fn fixed_columns() -> Vec<Field> {
    let mut fields = vec![
        Field::new(ENCOUNTER_ID, DataType::Utf8, false),
        Field::new(SUBJECT_ID, DataType::Utf8, false),
        time(START),
    ];
    fields.extend(CodeKind::OF_PAPER.map(codes));
    fields.extend([DIAGNOSIS_TREATMENT.field(), TREATMENT_LAB.field()]);
    fields
}

/// The columns of a file of encounters: the fixed ones, context if the vocabulary has any, then one nullable
/// boolean per label.
pub(super) fn encounters(labels: &[String], has_context: bool) -> Schema {
    let mut fields = fixed_columns();
    fields.extend(has_context.then(|| codes(CodeKind::Context)));
    fields.extend(labels.iter().map(|label| Field::new(label, DataType::Boolean, true)));
    Schema::new(fields)
}

/// The same columns and, after the start of an encounter, its end.
pub(super) fn with_ends(encounters: &Schema) -> Schema {
    let mut fields: Vec<Arc<Field>> = encounters.fields().to_vec();
    let start = encounters.index_of(START).expect("encounters have a column for their start");
    fields.insert(start + 1, Arc::new(time(END)));
    Schema::new(fields)
}

/// The columns of `vocabulary.parquet`.
pub(super) fn vocabulary() -> Schema {
    Schema::new(vec![
        Field::new("kind", DataType::Utf8, false),
        Field::new("id", DataType::UInt32, false),
        Field::new("code", DataType::Utf8, false),
        Field::new("description", DataType::Utf8, true),
        Field::new("count", DataType::UInt64, false),
    ])
}

/// The type of a column that need not be there.
pub(super) fn optional_columns() -> [Field; 4] {
    [codes(CodeKind::Context), time(END), time(PREDICTION_TIME), Field::new(PART, DataType::Utf8, true)]
}

/// Whether `name` cannot be the name of a label.
pub fn is_fixed_column(name: &str) -> bool {
    fixed_columns().iter().chain(&optional_columns()).any(|field| field.name() == name)
}

/// A type in words that a user of pandas, Polars or DuckDB knows.
pub(super) fn describe(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".into(),
        DataType::Boolean => "boolean".into(),
        DataType::UInt32 => "uint32".into(),
        DataType::UInt64 => "uint64".into(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => "timestamp in microseconds".into(),
        DataType::List(field) | DataType::LargeList(field) => {
            format!("list of {}", describe(field.data_type()))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{}: {}", field.name(), describe(field.data_type())))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string().to_lowercase(),
    }
}
