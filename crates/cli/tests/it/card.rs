use std::fs;
use std::path::Path;

use gct::dataset::{Source, Writer};
use gct::files::Overwrite;
use gct::record::{Code, Encounter, EncounterId, PerKind, SubjectId};
use serde_json::{Value, json};
use snapbox::str;

use crate::{gct, json, names, refusal, trained};

/// A source as `gct prepare eicu` writes it, of a preparation that dropped some and could not read some.
fn source() -> Source {
    let counts = json!({
        "encounters_read": 447, "encounters_kept": 400, "dropped": {"too_few_diagnosis": 40, "too_long": 7},
        "events_read": 1300, "events_kept": 1250, "events_dropped": {"after_discharge": 50},
        "rows_unreadable": {"diagnosis.diagnosisoffset": 31},
        "labels_unknown": {},
    });
    let settings = json!({
        "input": "/home/someone/secret/eicu-demo", "rules": null,
        "options": {"observe_hours": null, "after_discharge": "drop", "early_ends": "drop", "mortality": "unit",
            "readmission_of_dead": "unknown", "labs": false},
        "min_codes": {"diagnosis": 1, "treatment": 0, "lab": 0},
        "max_codes": {"diagnosis": 50, "treatment": 50, "lab": 200},
        "min_count": 1, "rare": "drop", "lab_bins": 5, "rollup": {"diagnosis": "/home/someone/secret/ccs.csv",
            "treatment": null, "lab": null}, "rollup_unmapped": "keep", "context": ["age", "sex", "length_of_stay"],
        "labels": null, "limit": null, "split_by": "recorded", "split_seed": 0,
    });
    let findings = json!({"counts": counts, "lab_bounds": {}, "context_bounds": {}, "rollups": {}});
    Source { kind: "eicu".into(), settings, findings }
}

/// A dataset `data` of 400 encounters of 200 subjects. Of the label `mortality` every 16th is unknown and
/// every fifth true; `dates` says whether encounters have a start.
fn prepared(home: &Path, dates: bool) {
    let code = |code: &str| Code { code: code.into(), description: None, count: 0 };
    let vocabulary = PerKind {
        context: ["age=18-64", "age=65-", "sex=female", "sex=male"].map(code).into(),
        diagnosis: vec![code("cough"), code("fever"), code("a|b <b>")],
        treatment: vec![code("rest")],
        ..PerKind::default()
    };
    let encounter = |number: u32| Encounter {
        id: EncounterId::new(format!("e{number:03}")),
        subject: SubjectId::new(format!("s{:03}", number / 2)),
        // A day apart, from 2015-03-10.
        start: dates.then_some(1_426_000_000_000_000 + i64::from(number) * 86_400_000_000),
        labels: vec![(!number.is_multiple_of(16)).then_some(number.is_multiple_of(5)), None],
        ..Encounter::new(PerKind {
            context: vec![number % 2, 2 + number / 3 % 2],
            diagnosis: vec![number / 2 % 3],
            treatment: vec![0],
            ..PerKind::default()
        })
    };
    let labels = vec!["mortality".into(), "readmission".into()];
    let mut writer = Writer::create(&home.join("data"), Overwrite::Refuse, vocabulary, labels).unwrap();
    writer.write(&(0..400).map(encounter).collect::<Vec<_>>()).unwrap();
    writer.finish(source()).unwrap();
}

const SHORT: &str = "--steps 4 --set validate_every=2 --set batch=8 --set model.width=16 --quiet";

fn train(home: &Path, task: &str) {
    gct(home, &format!("train --data data --task {task} --model gct --out run {SHORT}")).assert().success();
}

/// The card of the run `run`.
fn card(home: &Path, line: &str) -> String {
    gct(home, &format!("card run --out card.md --force {line}")).assert().success().stderr_eq("");
    fs::read_to_string(home.join("card.md")).unwrap()
}

/// The lines of a section.
fn section<'c>(card: &'c str, title: &str) -> &'c str {
    let (_, rest) = card.split_once(&format!("\n## {title}")).unwrap_or_else(|| panic!("{title}: {card}"));
    rest.split("\n## ").next().unwrap()
}

#[test]
fn a_card_of_prepared_records() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    prepared(home, true);
    train(home, "mortality");
    let assert = gct(home, "card run --out card.md").assert().success().stderr_eq("");
    let said = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert_eq!(said, "card.md: 12 points are left for its authors to complete\n");
    let card = fs::read_to_string(home.join("card.md")).unwrap();
    assert!(!card.contains("secret") && !card.contains(&*home.to_string_lossy()), "{card}");
    assert!(!card.contains("s001") && !card.contains("e001"), "{card}");
    snapbox::assert_data_eq!(
        section(&card, "Data ").to_owned(),
        str![[r#"
(TRIPOD+AI 5, 6a)

|  |  |
| --- | --- |
| source | eicu |
| dataset | data |
| SHA-256 of its encounters | [..] |
| encounters began | from 2015-03 to 2016-04, but for 10 encounters at each end |
| trained by | gct 0.1.0 |

> **To be completed by the authors:** where and why the records were made, and whom they represent (item 5a); the end of follow-up (item 5b)

> **To be completed by the authors:** kind, number and place of the hospitals or practices (item 6a)

"#]]
    );
    snapbox::assert_data_eq!(
        section(&card, "Participants").to_owned(),
        str![[r#"
: who was left out, and why (TRIPOD+AI 6b, 6c, 20a)

Encounters, each rule applied to what those before it left:

|  | encounters |
| --- | ---: |
| encounters of the source | hidden |
| left out: too few diagnosis codes | hidden |
| left out: too long | hidden |
| encounters of the dataset | hidden |

- Of the test split, hidden were left out of the results: their label is not known.

> **To be completed by the authors:** why these rules were chosen, and the treatments that patients received, if that matters (item 6b, c)

"#]]
    );
    snapbox::assert_data_eq!(
        section(&card, "Outcome").to_owned(),
        str![[r#"
 (TRIPOD+AI 8)

Whether the label mortality of an encounter is true. The answer is a probability.

mortality: the patient died in the unit.

Prevalence of mortality:

| split | known | positive | prevalence |
| --- | ---: | ---: | ---: |
| train | 310 | 58 | 18.71 % |
| validation | hidden | hidden | hidden |
| test | 43 | 12 | 27.91 % |
| all | hidden | hidden | hidden |

> **To be completed by the authors:** who assessed the outcome, and what they knew by then (items 8b, 8c)

"#]]
    );
    snapbox::assert_data_eq!(
        section(&card, "Moment of prediction").to_owned(),
        str![[r#"
 (TRIPOD+AI 8a, 9b)

- The data have no earlier moment: all codes of an encounter are given, so the prediction is made at its end.
- Codes recorded after the end of the encounter are left out.

Known only after the encounter, and yet given: length_of_stay.

"#]]
    );
    snapbox::assert_data_eq!(
        section(&card, "Predictors").to_owned(),
        str![[r#"
 (TRIPOD+AI 9)

An encounter is a set of codes. A code is in it or not: how often, in which order and when it was recorded is not used.

Codes that the model knows:

| kind | codes | per encounter | allowed per encounter | rolled up by | codes with buckets |
| --- | ---: | ---: | ---: | ---: | ---: |
| context | 4 | 2.00 | - | - | - |
| diagnosis | 3 | 1.00 | 1 to 50 | ccs.csv | - |
| treatment | 1 | 1.00 | 0 to 50 | - | - |
| lab | 0 | 0.00 | 0 to 200 | - | - |

Context, what is known of the patient and the visit: age, sex, length_of_stay.

"#]]
    );
    snapbox::assert_data_eq!(
        section(&card, "Sample size").to_owned(),
        str![[r#"
 (TRIPOD+AI 10, 21)

Data that the run learned from:

| split | encounters | subjects | evaluable encounters |
| --- | ---: | ---: | ---: |
| train | 332 | 166 | 310 |
| validation | hidden | 12 | 22 |
| test | hidden | 22 | 43 |
| all | hidden | 200 | 375 |

All encounters that passed the rules were used; no size was computed in advance.

"#]]
    );
    snapbox::assert_data_eq!(
        section(&card, "Limits").to_owned(),
        str![[r#"
 (TRIPOD+AI 25 to 27)

- All data are of one source (eicu); the model was not validated on any other.
- The model is given what is known only after the encounter: length_of_stay.
- The split is at random: not by time, and not by place.
- mortality: 12 of the evaluated encounters are positive, fewer than 100.
- mortality: fewer than 11 of the validation encounters, by which weights were chosen, have one of the two answers.
- mortality: 58 of the training encounters are positive, fewer than 100.
- One training with one seed (0): how much others differ is not shown.
- Probabilities were not recalibrated.
- Too small to be told, alone or by subtraction: sex female, sex male, age 18-64, age 65-.

> **To be completed by the authors:** what the results mean, and other limits (items 25, 26); what a user must know and have (item 27)

"#]]
    );
    snapbox::assert_data_eq!(
        section(&card, "How to repeat it").to_owned(),
        str![[r#"
 (TRIPOD+AI 12, 18f)

|  |  |
| --- | --- |
| program | gct 0.1.0 |
| run | run |
| dataset | data |
| SHA-256 of its encounters | [..] |
| SHA-256 of the weights | [..] |

Settings of the data, data.toml:

```
after_discharge = "drop"
context = ["age", "sex", "length_of_stay"]
early_ends = "drop"
lab_bins = 5
labs = false
min_count = 1
mortality = "unit"
rare = "drop"
readmission_of_dead = "unknown"
rollup_unmapped = "keep"
split_by = "recorded"
split_seed = 0

[max_codes]
diagnosis = 50
lab = 200
treatment = 50

[min_codes]
diagnosis = 1
lab = 0
treatment = 0

[rollup]
diagnosis = "ccs.csv"
```

Settings of the training, training.toml:

```
average = 0.0
batch = 8
class_weight = 1.0
clip = 0.0
decay = "constant"
label_smoothing = 0.0
learning_rate = 0.00011
patience = 0
seed = 0
steps = 4
task = "mortality"
train_share = 1.0
validate_every = 2
warmup = 0
weight_decay = 0.0

[head]
count = 1
name = "labels"

[history]
aggregator = "none"
days = 0.0
kernel = 3
order = "time"
visits = 20

[model]
blocks = 3
name = "gct"
prior = "replaces"
regularization = 1.5
regularizer = "released"
width = 16

[model.attention]
directed = false
heads = 1
join = "concat"
normalizer = "softmax"

[model.dropout]
mlp = 0.72
post_mlp = 0.005

[prior]
cells = "conditional"
hidden = "keep_visit_and_self"
scalar = 0.5

[split]
by = "recorded"
seed = 0
```

```
gct prepare eicu eicu-demo --config data.toml --out data
gct train --config training.toml --data data --out run
gct evaluate run
gct card run --out card.md
```

"#]]
    );
}

#[test]
fn a_card_of_synthetic_data() {
    let (_guard, home) = trained("diagnosis_treatment");
    let card = card(&home, "");
    snapbox::assert_data_eq!(
        section(&card, "Outcome").to_owned(),
        str![[r#"
 (TRIPOD+AI 8)

Whether each of the labels d1_m1, d2_m1 of an encounter is true. The answer is a probability for each.

d1_m1: in the encounter, diagnosis D_199 led to treatment T_939.

d2_m1: in the encounter, diagnosis D_133 led to treatment T_939.

Prevalence of d1_m1:

| split | known | positive | prevalence |
| --- | ---: | ---: | ---: |
| train | 248 | 5 | 2.02 % |
| validation | 27 | 2 | 7.41 % |
| test | 25 | 1 | 4.00 % |
| all | 300 | 8 | 2.67 % |

Prevalence of d2_m1:

| split | known | positive | prevalence |
| --- | ---: | ---: | ---: |
| train | 248 | 5 | 2.02 % |
| validation | 27 | 0 | 0.00 % |
| test | 25 | 0 | 0.00 % |
| all | 300 | 5 | 1.67 % |

"#]]
    );
    snapbox::assert_data_eq!(
        section(&card, "Results: performance").to_owned(),
        str![[r#"
 (TRIPOD+AI 23a)

On 25 encounters: the test split of the same data.

Metrics with 95 % intervals:

|  | all labels | d1_m1 | d2_m1 |
| --- | ---: | ---: | ---: |
| AUCPR | [..] | [..] | - |
| AUROC | [..] | [..] | - |
| accuracy | [..] | [..] | [..] |
| log loss | [..] | [..] | [..] |
| Brier score | [..] | [..] | [..] |
| calibration error | [..] | [..] | [..] |

A dash is a metric that is not defined, for example because one of the two answers is missing.

Attention beside the true edges, mean over blocks:

|  |  |
| --- | --- |
| KL(attention /|/| truth) | [..] |
| entropy of attention | [..] |
| AUCPR of true edges by attention | [..] |

"#]]
    );
}

#[test]
fn every_question_has_a_card() {
    for task in ["graph_reconstruction", "masked_diagnosis", "label:d1_m1"] {
        let (_guard, home) = trained(task);
        let card = card(&home, "");
        let headings: Vec<&str> = card.lines().filter(|line| line.starts_with('#')).collect();
        assert_eq!(
            headings[0],
            format!("# Model card: {} by gct", task.replace('_', " ").replace("label:d1 m1", "label d1_m1"))
        );
        for heading in ["Data", "Outcome", "Results: performance", "Limits", "How to repeat it"] {
            assert!(headings.iter().any(|line| line.starts_with(&format!("## {heading}"))), "{headings:?}");
        }
        assert!(!card.contains("hidden |"), "nothing of synthetic data is hidden: {card}");
    }
}

#[test]
fn what_is_not_recorded_is_said() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    prepared(home, false);
    train(home, "mortality");
    let card = card(home, "");
    assert!(card.contains("| encounters began | not recorded |"), "{card}");
    assert!(card.contains("Encounters have no dates"), "{card}");
    // The card keeps what the run knows when the data are gone, and is evaluated on others.
    fs::rename(home.join("data"), home.join("elsewhere")).unwrap();
    let said = refusal(home, "card run --out other.md");
    assert!(said.contains("data"), "{said}");
    let report = json(home, "card run --data elsewhere --split test --out other.md");
    assert_eq!(report["card"], "other.md");
}

#[test]
fn the_sections_are_on_the_page_and_in_json() {
    let (_guard, home) = trained("diagnosis_treatment");
    let report = json(&home, "card run --out card.md");
    assert_eq!(report["title"], "Model card: diagnosis treatment by gct");
    let titles: Vec<&str> = report["sections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|section| section["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles[..3], ["Summary", "Intended use and users", "Data"]);
    gct(&home, "report run --out report.html").assert().success();
    let html = fs::read_to_string(home.join("report.html")).unwrap();
    let (_, rest) = html.split_once(r#"<script type="application/json" id="report">"#).unwrap();
    let page: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let on_page = page["runs"][0]["card"]["sections"].as_array().unwrap();
    assert_eq!(on_page.len(), titles.len());
    // But for the commands, which only a command line knows.
    assert_eq!(on_page[..titles.len() - 1], report["sections"].as_array().unwrap()[..titles.len() - 1]);
}

#[test]
fn the_same_run_gives_the_same_card() {
    let (_guard, home) = trained("diagnosis_treatment");
    let cards = [1, 3].map(|threads| card(&home, &format!("--threads {threads}")));
    assert_eq!(cards[0], cards[1]);
}

#[test]
fn a_small_count_is_not_told_and_cannot_be_had() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    prepared(home, true);
    train(home, "mortality");
    let (shown, hidden) = (card(home, "--min-cell 0"), card(home, ""));
    assert!(shown.contains("| left out: too long | 7 |"), "{shown}");
    assert!(shown.contains("| encounters of the source | 447 |"), "{shown}");
    assert!(hidden.contains("| left out: too long | hidden |"), "{hidden}");
    assert!(
        hidden.contains("| left out: too few diagnosis codes | hidden |")
            || hidden.contains("| encounters of the source | hidden |")
    );
    for title in ["Participants", "Outcome", "Sample size"] {
        let cells = section(&hidden, title).lines().filter(|line| line.starts_with('|'));
        let cells = cells.flat_map(|line| line.split('|').map(str::trim));
        let small: Vec<&str> =
            cells.filter(|cell| cell.parse::<u64>().is_ok_and(|count| (1..11).contains(&count))).collect();
        assert_eq!(small, [""; 0], "{title}: {hidden}");
    }
    assert!(hidden.contains("Counts from 1 to 10 are hidden"), "{hidden}");
}

#[test]
fn subgroups_are_chosen_by_name() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    prepared(home, true);
    train(home, "mortality");
    let usual = card(home, "--min-cell 0");
    assert!(usual.contains("By sex:") && usual.contains("By age:"), "{usual}");
    let one = card(home, "--min-cell 0 --by age");
    assert!(!one.contains("By sex:") && one.contains("By age:"), "{one}");
    let said = refusal(home, "card run --by ward --out other.md");
    assert!(said.starts_with("error: unknown name to group by `ward`; known: age, sex"), "{said}");
    assert!(!home.join("other.md").exists());
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let (_guard, home) = trained("diagnosis_treatment");
    let before = names(&home);
    gct(&home, "card run --out card.txt").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: card.txt cannot be written: its name must end in .md or .markdown
hint: end its name in .md or .markdown

"#]]);
    gct(&home, "card nowhere --out card.md").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: cannot open nowhere: No such file or directory (os error 2)
hint: check the spelling of the path, and that it is there

"#]]);
    gct(&home, "card data --out card.md").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: data is not a run folder: it has no run.json
hint: a run folder is made by `gct train --out RUN`

"#]]);
    gct(&home, "card run --by sex --out card.md").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: setting `by`: sex is not allowed; expected a column of a table: the dataset has no context
hint: change it where it was given: by a flag, with --set or in a file

"#]]);
    gct(&home, "card run --data nowhere --out card.md").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: cannot open nowhere: No such file or directory (os error 2)
hint: check the spelling of the path, and that it is there

"#]]);
    assert_eq!(names(&home), before);
    fs::write(home.join("card.md"), "mine").unwrap();
    gct(&home, "card run --out card.md").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: card.md already exists
hint: choose another path, or replace it with --force

"#]]);
    assert_eq!(fs::read_to_string(home.join("card.md")).unwrap(), "mine");
}
