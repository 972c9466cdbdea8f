use snapbox::str;

use crate::{gct, home, json, names};

#[test]
fn counts_the_training_split() {
    let (_home, home) = home();
    gct(&home, "prior data --out prior.parquet").assert().success().stderr_eq("").stdout_eq(str![[r#"
[..] training encounters, [..] pairs of codes seen together, in [..] s

"#]]);
    assert_eq!(names(&home), ["data", "prior.parquet"]);
    let (prior, split) = (json(&home, "prior data --split-seed 2"), json(&home, "split data --split-seed 2"));
    assert_eq!(prior["training_encounters"], split["train"]["encounters"]);
}
