//! `gct inspect --verify`: every byte and every row of a dataset.

use std::time::Instant;

use anyhow::Result;
use gct::dataset::Dataset;
use serde_json::json;

use crate::terminal::{self, count, visible};

/// Checks everything that can be checked, and says what that was.
pub(crate) fn run(dataset: &Dataset, json: bool, quiet: bool) -> Result<()> {
    let (start, manifest) = (Instant::now(), dataset.manifest());
    let bytes: u64 = manifest.files.all().map(|(_, entry)| entry.bytes).sum();
    let bar = terminal::progress(bytes, "hashing files", quiet);
    let hashed = dataset.check_hashes(&terminal::counting(&bar));
    bar.finish_and_clear();
    hashed?;
    let bar = terminal::progress(manifest.encounters, "checking every encounter", quiet);
    let read = dataset.check_rows(&terminal::counting(&bar));
    bar.finish_and_clear();
    read?;
    let seconds = start.elapsed().as_secs_f64();
    if json {
        return Ok(terminal::print_json(&json!({
            "verified": true,
            "schema_version": manifest.schema_version,
            "sha256": manifest.identity(),
            "files": manifest.files,
            "bytes": bytes,
            "encounters": manifest.encounters,
            "seconds": seconds,
        }))?);
    }
    let files = manifest.files.all();
    let rows = files.map(|(name, entry)| vec![name.to_owned(), count(entry.bytes), entry.sha256.clone()]);
    Ok(terminal::print(&format!(
        "{}: every file is as it was written, and every row is valid\n\n{}\n\
         {} bytes and {} encounters in {seconds:.1} s\n",
        visible(dataset.path().display()),
        terminal::table(&["file", "bytes", "SHA-256"], rows),
        count(bytes),
        count(manifest.encounters),
    ))?)
}
