//! Codes become the groups that a rule or a file puts them into, before anything is counted.

use std::io::Write;
use std::path::Path;

use gct::dataset::Dataset;
use gct::record::CodeKind;
use serde_json::{Value, json};

use super::{json, lines, names, prepare, write};

/// Two encounters with diagnoses of ICD-10 and ICD-9, drugs of ATC, and codes that are neither.
const EVENTS: (&str, &str) = (
    "e.csv",
    "encounter_id,subject_id,kind,code,description\n\
     1,a,dx,ICD10CM:I50.1,left heart failure\n\
     1,a,dx,ICD10CM:I50.9,heart failure\n\
     1,a,dx,ICD10CM:I10,hypertension\n\
     1,a,rx,ATC:C07AB02,metoprolol\n\
     1,a,rx,ATC:C07AB07,bisoprolol\n\
     2,b,dx,ICD9CM:428.0,heart failure\n\
     2,b,dx,ICD9CM:E850.1,poisoning\n\
     2,b,dx,frail,frailty\n\
     2,b,dx,frail,frailty\n\
     2,b,rx,walk,a walk\n",
);

/// A folder with these events and other files.
fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[EVENTS]);
    write(home.path(), files);
    home
}

/// The codes of a kind with what they mean, and in how many encounters they are.
fn vocabulary(dataset: &Path, kind: CodeKind) -> Vec<String> {
    let dataset = Dataset::open(dataset).unwrap();
    let codes = dataset.vocabulary()[kind].iter();
    codes.map(|code| format!("{} {:?} {}", code.code, code.description.as_deref(), code.count)).collect()
}

/// The same, of diagnoses, after they are rolled up.
fn diagnoses(home: &Path, flags: &str) -> Vec<String> {
    json(home, &format!("events e.csv --out data --force {flags}"));
    let found = vocabulary(&home.join("data"), CodeKind::Diagnosis);
    found.iter().map(|code| code.replace("Some(", "").replace(')', "")).collect()
}

#[test]
fn categories_are_counted_once_per_encounter() {
    let home = home(&[]);
    let counts = json(home.path(), "events e.csv --out data --rollup diagnosis=icd3 --rollup treatment=atc4");
    assert_eq!(
        lines(&home.path().join("data")),
        ["1 of a: ICD10CM:I10 ICD10CM:I50 | ATC:C07AB | ", "2 of b: ICD9CM:428 ICD9CM:E850 frail | walk | ",]
    );
    // A code that is its own group keeps what it means; so does one that is in none.
    assert_eq!(
        vocabulary(&home.path().join("data"), CodeKind::Diagnosis),
        [
            "ICD10CM:I10 Some(\"hypertension\") 1",
            "ICD10CM:I50 None 1",
            "ICD9CM:428 None 1",
            "ICD9CM:E850 None 1",
            "frail Some(\"frailty\") 1",
        ]
    );
    let rollups = json!([
        {"kind": "diagnosis", "rule": "icd3", "codes_mapped": 5, "codes_unmapped": 1, "groups": 4, "events_unmapped": 2},
        {"kind": "treatment", "rule": "atc4", "codes_mapped": 2, "codes_unmapped": 1, "groups": 1, "events_unmapped": 1},
    ]);
    assert_eq!(counts["rollups"], rollups);
    // Both events of I50 are kept, and are one code.
    assert_eq!((&counts["events_read"], &counts["events_kept"]), (&json!(10), &json!(10)));
    assert_eq!(counts["vocabulary"], json!({"diagnosis": 5, "treatment": 2, "lab": 0}));
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    let source = &dataset.manifest().source;
    assert_eq!(source.settings["rollup"]["diagnosis"], "icd3");
    assert_eq!(source.settings["rollup"]["treatment"], "atc4");
    assert_eq!(source.settings["rollup"]["lab"], Value::Null);
    assert_eq!(source.settings["rollup_unmapped"], "keep");
    assert_eq!(source.findings["rollups"], json!({}));
}

#[test]
fn chapters_say_what_they_mean() {
    let home = home(&[]);
    assert_eq!(
        diagnoses(home.path(), "--rollup diagnosis=icd_chapter"),
        [
            "ICD10CM:I00-I99 \"Diseases of the circulatory system\" 1",
            "ICD9CM:390-459 \"Diseases of the circulatory system\" 1",
            "ICD9CM:E000-E999 \"External causes of injury and poisoning\" 1",
            "frail \"frailty\" 1",
        ]
    );
}

#[test]
fn every_level_of_atc() {
    let home = home(&[]);
    for (level, expected) in
        [(1, "ATC:C"), (2, "ATC:C07"), (3, "ATC:C07A"), (4, "ATC:C07AB"), (5, "ATC:C07AB02 ATC:C07AB07")]
    {
        json(home.path(), &format!("events e.csv --out data --force --rollup treatment=atc{level}"));
        let first = &lines(&home.path().join("data"))[0];
        assert!(first.ends_with(&format!("| {expected} | ")), "{first}");
    }
}

#[test]
fn unmapped_codes_are_kept_dropped_or_one_group() {
    let home = home(&[]);
    let second = |flags: &str| {
        let counts = json(home.path(), &format!("events e.csv --out data --force {flags}"));
        assert_eq!(counts["unbalanced"], json!([]));
        (lines(&home.path().join("data"))[1].clone(), counts)
    };
    let rolled = "--rollup diagnosis=icd3";
    let (line, kept) = second(rolled);
    assert_eq!(line, "2 of b: ICD9CM:428 ICD9CM:E850 frail | walk | ");
    let (line, dropped) = second(&format!("{rolled} --rollup-unmapped drop"));
    assert_eq!(line, "2 of b: ICD9CM:428 ICD9CM:E850 | walk | ");
    assert_eq!(kept["events_dropped"], json!({}));
    assert_eq!(dropped["events_dropped"], json!({"unmapped_code": 2}));
    assert_eq!((&dropped["events_read"], &dropped["events_kept"]), (&json!(10), &json!(8)));
    assert_eq!(dropped["rollups"], kept["rollups"]);
    let (line, _) = second(&format!("{rolled} --rollup-unmapped group"));
    assert_eq!(line, "2 of b: (unmapped) ICD9CM:428 ICD9CM:E850 | walk | ");
    let codes = vocabulary(&home.path().join("data"), CodeKind::Diagnosis);
    assert_eq!(codes[0], "(unmapped) Some(\"a diagnosis that is in no group\") 1");
    // With all treatments dropped nothing but an encounter without any is left.
    let (line, counts) = second("--rollup treatment=atc1 --rollup-unmapped drop --min-codes treatment=0");
    assert_eq!(line, "2 of b: ICD9CM:428.0 ICD9CM:E850.1 frail |  | ");
    assert_eq!(counts["events_dropped"], json!({"unmapped_code": 1}));
}

#[test]
fn a_code_that_is_called_as_the_group_of_unmapped_ones_stays_apart() {
    let rows = "encounter_id,subject_id,kind,code\n1,a,dx,(unmapped)\n1,a,dx,x\n1,a,dx,I10\n1,a,rx,m\n";
    let home = home(&[("e.csv", rows), ("map.csv", "code,group\n(unmapped),known\nI10,heart\n")]);
    let found = diagnoses(home.path(), "--rollup diagnosis=map.csv --rollup-unmapped group");
    assert_eq!(found[0], "(unmapped 2 \"a diagnosis that is in no group\" 1");
    assert_eq!(found[1..], ["heart None 1", "known None 1"]);
}

#[test]
fn a_table_of_codes_and_groups() {
    // With and without dots, prefixes and upper case; a code of ICD-9 is not the same code of ICD-10.
    let map = "code,group,description\ni501,hf,heart failure\nI50.9,hf,heart failure\n\
               ICD10CM:E8501,amyloid,\nICD9CM:4280,hf,heart failure\nI10,,\nI11,htn,\n";
    let home = home(&[("map.csv", map)]);
    let expected = [
        "ICD10CM:I10 \"hypertension\" 1",
        "ICD9CM:E850.1 \"poisoning\" 1",
        "frail \"frailty\" 1",
        "hf \"heart failure\" 2",
    ];
    assert_eq!(diagnoses(home.path(), "--rollup diagnosis=map.csv"), expected);
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    // All that the file says, whether it occurs or not.
    assert_eq!(
        dataset.manifest().source.findings["rollups"],
        json!({"diagnosis": {"I501": "hf", "I509": "hf", "icd10:E8501": "amyloid", "icd9:4280": "hf", "I11": "htn"}})
    );
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    gzip.write_all(map.as_bytes()).unwrap();
    std::fs::write(home.path().join("map.csv.gz"), gzip.finish().unwrap()).unwrap();
    assert_eq!(diagnoses(home.path(), "--rollup diagnosis=map.csv.gz"), expected);
    write(home.path(), &[("map.tsv", &map.replace(',', "\t"))]);
    assert_eq!(diagnoses(home.path(), "--rollup diagnosis=map.tsv"), expected);
}

#[test]
fn ccs_as_it_is_published() {
    let map = "NOTE: New codes are introduced in October and old codes are phased out in September.\n\
        'ICD-9-CM CODE','CCS CATEGORY','CCS CATEGORY DESCRIPTION','ICD-9-CM CODE DESCRIPTION','OPTIONAL CCS CATEGORY','OPTIONAL CCS CATEGORY DESCRIPTION'\n\
        '     ','0    ','No DX',\"INVALID CODES IN USER DATA\",' ',' '\n\
        '4280 ','108  ','chf;nonhp',\"CHF, UNSPECIFIED\",' ',' '\n\
        'E8501','2613 ','E Codes: Poisoning',\"ACC POISON-METHADONE\",' ',' '\n\
        'I10  ','99   ','not of ICD-9',\"\",' ',' '\n";
    let home = home(&[("ccs.csv", map)]);
    assert_eq!(
        diagnoses(home.path(), "--rollup diagnosis=ccs.csv"),
        [
            "CCS:108 \"chf;nonhp\" 1",
            "CCS:2613 \"E Codes: Poisoning\" 1",
            "ICD10CM:I10 \"hypertension\" 1",
            "ICD10CM:I50.1 \"left heart failure\" 1",
            "ICD10CM:I50.9 \"heart failure\" 1",
            "frail \"frailty\" 1",
        ]
    );
    let rows = "encounter_id,subject_id,kind,code\n1,a,dx,x\n1,a,rx,ICD9PROC:47.01\n1,a,rx,CPT:4701\n";
    let map = "NOTE\n'ICD-9-CM CODE','CCS CATEGORY','CCS CATEGORY DESCRIPTION','ICD-9-CM CODE DESCRIPTION'\n\
        '4701 ','80 ','Appendectomy',\"LAP APPENDECTOMY\"\n";
    write(home.path(), &[("e.csv", rows), ("prref.csv", map)]);
    json(home.path(), "events e.csv --out data --force --rollup treatment=prref.csv");
    assert_eq!(lines(&home.path().join("data")), ["1 of a: x | CCS:80 CPT:4701 | "]);
}

#[test]
fn ccsr_as_it_is_published() {
    let header = "'ICD-10-CM CODE','ICD-10-CM CODE DESCRIPTION','Default CCSR CATEGORY IP','Default CCSR CATEGORY DESCRIPTION IP',\
        'CCSR CATEGORY 1','CCSR CATEGORY 1 DESCRIPTION'\n";
    let rows = "'I501',\"Left ventricular failure, unspecified\",'CIR019',Heart failure,'CIR019',Heart failure\n\
        'I509',\"Heart failure, unspecified\",'CIR019',Heart failure,'CIR019',Heart failure\n\
        'I10',Essential hypertension,'XXX000',Unacceptable PDX,'CIR007',Essential hypertension\n";
    let home = home(&[("ccsr.csv", &format!("{header}{rows}"))]);
    let found = diagnoses(home.path(), "--rollup diagnosis=ccsr.csv");
    assert_eq!(found[..2], ["CCSR:CIR007 \"Essential hypertension\" 1", "CCSR:CIR019 \"Heart failure\" 1"]);
    assert_eq!(found.len(), 5, "those of ICD-9 and `frail` are kept");
    let events = "encounter_id,subject_id,kind,code\n1,a,dx,x\n1,a,rx,ICD10PCS:0DTJ4ZZ\n";
    let map = "'ICD-10-PCS','ICD-10-PCS DESCRIPTION','PRCCSR','PRCCSR DESCRIPTION','CLINICAL DOMAIN'\n\
        '0DTJ4ZZ',\"Resection of Appendix\",'GIS011',Appendectomy,'Gastrointestinal System Procedures'\n";
    write(home.path(), &[("e.csv", events), ("prccsr.csv", map)]);
    json(home.path(), "events e.csv --out data --force --rollup treatment=prccsr.csv");
    assert_eq!(lines(&home.path().join("data")), ["1 of a: x | CCSR:GIS011 | "]);
}

#[test]
fn phecodes_as_they_are_published() {
    let home = home(&[
        (
            "ten.csv",
            "\"icd10cm\",\"icd10cm_str\",\"phecode\",\"phecode_str\",\"exclude_range\",\"leaf\",\"rollup\"\n\
             \"I50.1\",\"Left ventricular failure\",\"428.3\",\"Heart failure, left\",\"420-429.99\",\"1\",\"1\"\n\
             \"I50.9\",\"Heart failure\",\"428.2\",\"Heart failure NOS\",\"420-429.99\",\"1\",\"1\"\n\
             \"I10\",\"Hypertension\",\"\",\"\",\"\",\"\",\"\"\n",
        ),
        (
            "nine.csv",
            "\"ICD9\",\"ICD9 String\",\"PheCode\",\"Phenotype\",\"Excl. Phecodes\",\"Rollup\"\n\
             \"428.0\",\"CHF\",\"428.1\",\"Congestive heart failure\",\"\",\"1\"\n\
             \"I10\",\"not of ICD-9\",\"401.1\",\"Hypertension\",\"\",\"1\"\n\
             \"E850.1\",\"Methadone\",\"965.1\",\"Opiates\",\"\",\"1\"\n",
        ),
    ]);
    let ten = diagnoses(home.path(), "--rollup diagnosis=ten.csv --rollup-unmapped drop");
    let failures = ["PHECODE:428.2 \"Heart failure NOS\" 1", "PHECODE:428.3 \"Heart failure, left\" 1"];
    assert_eq!(ten, failures);
    let nine = diagnoses(home.path(), "--rollup diagnosis=nine.csv --rollup-unmapped drop");
    assert_eq!(nine, ["PHECODE:428.1 \"Congestive heart failure\" 1", "PHECODE:965.1 \"Opiates\" 1"]);
}

#[test]
fn links_are_rolled_up_alike() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "in/events.csv",
                "encounter_id,subject_id,kind,code\n1,a,dx,I50.1\n1,a,dx,I50.9\n1,a,dx,odd\n1,a,rx,C07AB02\n1,a,rx,C07AB07\n",
            ),
            (
                "in/links.csv",
                "encounter_id,cause,effect\n1,I50.1,C07AB02\n1,I50.9,C07AB07\n1,odd,C07AB02\n1,I51,C07AB02\n",
            ),
        ],
    );
    let flags = "events in --out data --force --rollup diagnosis=icd3 --rollup treatment=atc4";
    let counts = json(home.path(), flags);
    assert_eq!(lines(&home.path().join("data")), ["1 of a: I50 odd | C07AB | , I50>C07AB, odd>C07AB"]);
    // Two links are one edge; no event has I51.
    assert_eq!((&counts["links_kept"], &counts["edges"]), (&json!(3), &json!(2)));
    assert_eq!(counts["links_dropped"], json!({"unknown_cause": 1}));
    let counts = json(home.path(), &format!("{flags} --rollup-unmapped drop"));
    assert_eq!(lines(&home.path().join("data")), ["1 of a: I50 | C07AB | , I50>C07AB"]);
    assert_eq!(counts["links_dropped"], json!({"unknown_cause": 2}));
    assert_eq!(counts["unbalanced"], json!([]));
}

#[test]
fn rare_codes_are_rare_groups() {
    // Each code is in one encounter, the category in three.
    let rows: String =
        (0..3).map(|visit| format!("{visit},s{visit},dx,I50.{visit}\n{visit},s{visit},rx,m\n")).collect();
    let home = home(&[("e.csv", &format!("encounter_id,subject_id,kind,code\n{rows}"))]);
    let counts = json(home.path(), "events e.csv --dry-run --min-count 2 --rollup diagnosis=icd3");
    assert_eq!((&counts["encounters_kept"], &counts["rare"]["diagnosis"]), (&json!(3), &json!(0)));
    prepare(home.path(), "events e.csv --dry-run --min-count 2").assert().code(2);
}

#[test]
fn labs_are_rolled_up_without_their_values() {
    let rows = "encounter_id,subject_id,kind,code,numeric_value\n1,a,dx,x,\n1,a,rx,m,\n1,a,lab,Na,140\n1,a,lab,K,4\n";
    let home = home(&[("e.csv", rows), ("map.csv", "code,group\nNa,electrolyte\nK,electrolyte\n")]);
    let said = failure(home.path(), "--rollup lab=map.csv");
    assert_eq!(
        said,
        "error: labs cannot be rolled up while their values go into buckets: codes of one group can have values in different units\n\
         hint: leave values out with --lab-bins 0, or leave labs as they are\n"
    );
    json(home.path(), "events e.csv --out data --lab-bins 0 --rollup lab=map.csv");
    assert_eq!(lines(&home.path().join("data")), ["1 of a: x | m | electrolyte"]);
}

#[test]
fn rollups_are_settings_and_are_told_in_the_text() {
    let home = home(&[("c.toml", "[rollup]\ndiagnosis = \"icd3\"\ntreatment = \"atc1\"\n")]);
    let of = |flags: &str| -> Value {
        json(home.path(), &format!("events e.csv --dry-run {flags}"))["rollups"].clone()
    };
    let both = of("--rollup diagnosis=icd3 --rollup treatment=atc1");
    assert_eq!(of("--config c.toml"), both);
    assert_eq!(of("--set rollup.diagnosis=icd3 --rollup Treatment=atc1"), both);
    assert_eq!(of("--config c.toml --rollup diagnosis=icd_chapter")[0]["rule"], "icd_chapter");
    assert_eq!(of(""), json!([]));
    let output =
        prepare(home.path(), "events e.csv --dry-run --config c.toml --min-cell 2").assert().success();
    let text = String::from_utf8(output.get_output().stdout.clone()).unwrap();
    let table = "\nrollup        by   codes   groups   codes in none   their events\n\
        diagnosis   icd3       5        4              <2         hidden\n\
        treatment   atc1       2       <2              <2             <2\n";
    assert!(text.contains(table), "{text}");
}

/// What a command that must fail says, and that it leaves nothing behind.
fn failure(home: &Path, flags: &str) -> String {
    let before = names(home);
    let output = prepare(home, &format!("events e.csv --out failed {flags}")).assert().code(2).stdout_eq("");
    assert_eq!(names(home), before);
    let said = String::from_utf8(output.get_output().stderr.clone()).unwrap();
    assert_eq!(said.lines().count(), 2, "{said}");
    said
}

#[test]
fn what_is_wrong_is_said_and_nothing_is_written() {
    let home = home(&[
        ("two.csv", "code,group\nI10,a\nI11,b\nicd10cm:I1.0,c\n"),
        ("other.csv", "icd,name\nI10,a\n"),
        ("empty.csv", ""),
        ("none.csv", "code,group\n,a\n"),
        ("short.csv", "code,group\nI10,a\nI11\n"),
    ]);
    for (flags, expected) in [
        (
            "--rollup diagnosis=icd33",
            "error: the rollup of diagnosis: `icd33` is neither a rule nor a file; rules are icd3, icd_chapter, atc1, atc2, atc3, atc4, atc5\n\
             hint: is it the rule `icd3`? or give the path of a file that maps codes to groups\n",
        ),
        (
            "--rollup diagnosis=two.csv",
            "error: two.csv: row 3: the code icd10cm:I1.0 has the group c, but a in an earlier row\n\
             hint: keep one row per code, with a group of at most 1000 bytes; rows are counted from 1 without the header\n",
        ),
        (
            "--rollup diagnosis=other.csv",
            "error: other.csv maps no codes to groups; its columns are icd, name\n\
             hint: name them `code` and `group`, or give a file of CCS, CCSR or phecodes as it is published\n",
        ),
        ("--rollup diagnosis=empty.csv", "error: empty.csv has no rows\n"),
        ("--rollup diagnosis=none.csv", "error: none.csv has no rows\n"),
        ("--rollup diagnosis=short.csv", "error: short.csv: row 2: expected 2 fields, found 1\n"),
        ("--rollup diagnosis=.", "error: cannot read .: "),
        (
            "--rollup diagnosis=icd3 --rollup diagnosis=icd_chapter",
            "error: the rollup of diagnosis is given twice: icd3 and icd_chapter\nhint: give --rollup once per kind\n",
        ),
        (
            "--rollup visit=icd3",
            "error: option `rollup`: visit=icd3 is not allowed; expected KIND=RULE or KIND=FILE, where KIND is one of context, diagnosis, treatment, lab\n",
        ),
        ("--rollup icd3", "error: option `rollup`: icd3 is not allowed; expected NAME=VALUE\n"),
    ] {
        let said = failure(home.path(), flags);
        assert!(said.starts_with(expected), "{flags}: {said}");
    }
}
