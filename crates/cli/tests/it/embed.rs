use std::fs;

use snapbox::str;

use crate::{gct, json, refusal, trained};

#[test]
fn writes_a_vector_for_each_visit() {
    let (_guard, home) = trained("graph_reconstruction");
    gct(&home, "embed run --split all --out visits.npy").assert().success().stderr_eq("").stdout_eq(str![[
        r#"
visits.npy: vectors of 16 numbers for 300 encounters

"#
    ]]);
    let bytes = fs::read(home.join("visits.npy")).unwrap();
    let header = String::from_utf8_lossy(&bytes[..128]).into_owned();
    assert!(header.contains("'<f4'") && header.contains("(300, 16)"), "{header}");
    assert_eq!(bytes.len(), 128 + 300 * 16 * 4);
    let written = json(&home, "embed run --out visits.parquet");
    assert_eq!(written["rows"], json(&home, "evaluate run --bootstrap 0")["encounters"]);
}

#[test]
fn writes_a_vector_for_each_code_without_the_dataset() {
    let (_guard, home) = trained("graph_reconstruction");
    fs::remove_dir_all(home.join("data")).unwrap();
    let written = json(&home, "embed run --what codes --out codes.parquet");
    assert_eq!((&written["rows"], &written["width"]), (&3000.into(), &16.into()));
    let error = refusal(&home, "embed run --out visits.npy");
    assert!(error.starts_with("error: ") && error.contains("data"), "{error}");
}
