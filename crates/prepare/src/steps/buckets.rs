//! Buckets for the values of labs, whose bounds are quantiles of the training split.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use serde_json::json;

use super::{LONGEST_CODE, Steps};
use crate::error::Result;
use crate::summary::Summary;

impl Steps<'_> {
    /// Events with one code each, buckets in it, and a reason where one is dropped; and the bounds of the buckets.
    pub(super) async fn bounds(
        &self,
        summary: &mut Summary,
    ) -> Result<serde_json::Map<String, serde_json::Value>> {
        let text = "CAST(NULL AS VARCHAR)";
        let optional = [
            ("description", text),
            ("numeric_value", "CAST(NULL AS DOUBLE)"),
            ("dropped", text),
            ("note", text),
        ];
        let has_values = {
            let frame = self.engine.context.table("source_events").await?;
            frame.schema().fields().iter().any(|field| field.name() == "numeric_value")
        };
        let optional = self.columns("source_events", &optional).await?;
        let limited = match self.request.settings.limit {
            Some(_) => " WHERE v.encounter_id IN (SELECT encounter_id FROM encounters)",
            None => "",
        };
        let plain = format!(
            "SELECT encounter_id, kind, code, description, CAST(numeric_value AS DOUBLE) AS numeric_value, note, \
                 CASE WHEN dropped IS NOT NULL THEN dropped \
                      WHEN kind IS NULL OR kind NOT IN ('diagnosis', 'treatment', 'lab') THEN 'unknown_kind' \
                      WHEN code IS NULL OR code = '' THEN 'no_code' \
                      WHEN octet_length(code) > {LONGEST_CODE} THEN 'code_too_long' END AS dropped \
             FROM (SELECT CAST(encounter_id AS VARCHAR) AS encounter_id, kind, code, {optional} FROM source_events) v{limited}"
        );
        let plain = self.engine.sql(&plain).await?;
        self.engine.view("events", plain)?;
        let bins = self.request.settings.lab_bins;
        let mut found = serde_json::Map::new();
        if bins > 1 && has_values {
            let cumulative = format!(
                "SELECT code, numeric_value, sum(n) OVER (PARTITION BY code ORDER BY numeric_value) AS upto, \
                        sum(n) OVER (PARTITION BY code) AS total \
                 FROM (SELECT v.code, v.numeric_value, count(*) AS n FROM events v JOIN encounters e ON v.encounter_id = e.encounter_id \
                       WHERE v.kind = 'lab' AND v.dropped IS NULL AND e.dropped IS NULL AND v.numeric_value IS NOT NULL \
                             AND NOT isnan(v.numeric_value) AND {} GROUP BY v.code, v.numeric_value)",
                self.is_training()
            );
            let parts: Vec<String> = (1..bins).map(|part| format!("({part})")).collect();
            // The value that a share of part/bins of all values does not exceed; equal ones make one bound.
            let bounds = format!(
                "SELECT code, array_sort(array_agg(DISTINCT bound)) AS bounds FROM ( \
                     SELECT c.code, p.part, min(c.numeric_value) AS bound FROM ({cumulative}) c CROSS JOIN (VALUES {}) AS p(part) \
                     WHERE c.total >= {} AND c.upto * {bins} >= p.part * c.total GROUP BY c.code, p.part) GROUP BY code",
                parts.join(", "),
                // A bound of few values is nearly a value.
                self.request.settings.min_cell
            );
            let bounds = self.engine.sql(&bounds).await?;
            self.engine.keep("bucketing lab values", "bounds", bounds).await?;
            let all = self
                .engine
                .query("bucketing lab values", "SELECT code, bounds FROM bounds ORDER BY code")
                .await?;
            for batch in all {
                let codes = cast(batch.column(0), &DataType::Utf8)
                    .map_err(datafusion::error::DataFusionError::from)?;
                for row in 0..batch.num_rows() {
                    let bounds = batch.column(1).as_list::<i32>().value(row);
                    let bounds = bounds.as_primitive::<Float64Type>().values().to_vec();
                    found.insert(codes.as_string::<i32>().value(row).into(), json!(bounds));
                }
            }
            summary.bucketed_labs = found.len() as u64;
            // A lab without a bound, or an event without a value, keeps its code as it is.
            let coded = "SELECT v.encounter_id, v.kind, v.dropped, v.note, \
                     CASE WHEN b.code IS NULL THEN v.code \
                          ELSE concat(v.code, '//', CAST(bucket(v.numeric_value, b.bounds) + 1 AS VARCHAR), '-of-', \
                                      CAST(cardinality(b.bounds) + 1 AS VARCHAR)) END AS code, \
                     CASE WHEN b.code IS NULL THEN v.description \
                          ELSE concat(coalesce(v.description, v.code), ', ', bucket_text(v.numeric_value, b.bounds)) END AS description \
                 FROM events v LEFT JOIN bounds b ON v.kind = 'lab' AND v.code = b.code AND v.numeric_value IS NOT NULL AND NOT isnan(v.numeric_value)";
            let coded = self.engine.sql(coded).await?;
            self.engine.view("coded", coded)?;
        } else {
            let coded = self
                .engine
                .sql("SELECT encounter_id, kind, dropped, note, code, description FROM events")
                .await?;
            self.engine.view("coded", coded)?;
        }
        Ok(found)
    }
}
