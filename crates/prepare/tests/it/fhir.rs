use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::{json, lines, names, prepare, write};

/// A value that must not be in any message.
const SECRET: &str = "PATIENT-4711";

fn concept(system: &str, code: &str, display: &str) -> Value {
    json!({"coding": [{"system": system, "code": code, "display": display}]})
}

fn snomed(code: &str) -> Value {
    concept("http://snomed.info/sct", code, &format!("Snomed {code}"))
}

fn rxnorm(code: &str) -> Value {
    concept("http://www.nlm.nih.gov/research/umls/rxnorm", code, &format!("Pill {code}"))
}

fn loinc(code: &str) -> Value {
    concept("http://loinc.org", code, &format!("Lab {code}"))
}

/// What is known of two patients. `to` writes a reference.
fn resources(to: impl Fn(&str, &str) -> String) -> Vec<Value> {
    let to = |kind: &str, id: &str| json!({"reference": to(kind, id)});
    let encounter = |id: &str, patient: &str, class: &str, start: &str, end: &str| {
        json!({
            "resourceType": "Encounter", "id": id, "status": "finished", "subject": to("Patient", patient),
            "class": {"system": "http://terminology.hl7.org/CodeSystem/v3-ActCode", "code": class},
            "period": {"start": start, "end": end}, "text": {"div": SECRET},
        })
    };
    let laboratory = json!([{"coding": [{"code": "laboratory"}]}]);
    let vital = json!([{"coding": [{"code": "vital-signs"}]}]);
    vec![
        json!({"resourceType": "Patient", "id": "p1", "deceasedDateTime": "2020-01-21T23:30:00-05:00"}),
        json!({"resourceType": "Patient", "id": "p2", "name": [{"family": SECRET}]}),
        json!({"resourceType": "Organization", "id": "o", "name": SECRET}),
        encounter("e1", "p1", "IMP", "2020-01-01T10:00:00-05:00", "2020-01-03T10:00:00-05:00"),
        encounter("e2", "p1", "IMP", "2020-01-20T10:00:00-05:00", "2020-01-21T23:45:00-05:00"),
        encounter("e3", "p2", "AMB", "2020-05-01T10:00:00-05:00", "2020-05-01T10:30:00-05:00"),
        json!({"resourceType": "Condition", "id": "c1", "code": snomed("1"), "encounter": to("Encounter", "e1")}),
        json!({"resourceType": "Condition", "id": "c2", "code": snomed("2"), "encounter": to("Encounter", "e3")}),
        json!({"resourceType": "Condition", "id": "c3", "code": snomed("3"), "encounter": to("Encounter", "e3"),
               "verificationStatus": {"coding": [{"code": "refuted"}]}}),
        json!({"resourceType": "Condition", "id": "c4", "code": snomed("4")}),
        // A condition of an earlier encounter, by reference.
        json!({"resourceType": "Procedure", "id": "x1", "status": "completed", "code": snomed("10"),
               "encounter": to("Encounter", "e2"), "reasonReference": [to("Condition", "c1")]}),
        json!({"resourceType": "Procedure", "id": "x2", "status": "not-done", "code": snomed("11"),
               "encounter": to("Encounter", "e2"), "reasonReference": [to("Condition", "c2")]}),
        // A reason by code; and what is called `context` in some exports.
        json!({"resourceType": "MedicationRequest", "id": "r1", "medicationCodeableConcept": rxnorm("77"),
               "context": to("Encounter", "e1"), "reasonCode": [snomed("5")]}),
        json!({"resourceType": "MedicationRequest", "id": "r2", "medicationReference": to("Medication", "m1"),
               "encounter": to("Encounter", "e3"), "reasonReference": [to("Condition", "c2"), to("Observation", "l1")]}),
        json!({"resourceType": "MedicationRequest", "id": "r3", "medicationReference": {"reference": "#m1"},
               "contained": [{"resourceType": "Medication", "id": "m1", "code": rxnorm("99")}],
               "encounter": to("Encounter", "e3")}),
        json!({"resourceType": "MedicationRequest", "id": "r4", "status": "entered-in-error",
               "medicationCodeableConcept": rxnorm("1"), "encounter": to("Encounter", "e3")}),
        json!({"resourceType": "Medication", "id": "m1", "code": rxnorm("88")}),
        json!({"resourceType": "Observation", "id": "l1", "status": "final", "category": laboratory, "code": loinc("L1"),
               "encounter": to("Encounter", "e1"), "valueQuantity": {"value": 5.5, "unit": "mg"}}),
        json!({"resourceType": "Observation", "id": "l2", "status": "final", "category": laboratory, "code": loinc("L1"),
               "encounter": to("Encounter", "e2"), "valueQuantity": {"value": 7.5, "unit": "mg"}}),
        json!({"resourceType": "Observation", "id": "l3", "category": laboratory, "code": loinc("L2"),
               "encounter": to("Encounter", "e1"), "valueCodeableConcept": snomed("20")}),
        json!({"resourceType": "Observation", "id": "l4", "code": loinc("L3"), "encounter": to("Encounter", "e1"),
               "valueString": "fine"}),
        json!({"resourceType": "Observation", "id": "l5", "category": vital, "code": loinc("B"),
               "encounter": to("Encounter", "e3"), "component": [
                   {"code": loinc("B1"), "valueQuantity": {"value": 120}},
                   {"code": loinc("B2"), "valueQuantity": {"value": 80}}]}),
    ]
}

fn relative(kind: &str, id: &str) -> String {
    format!("{kind}/{id}")
}

fn urn(_: &str, id: &str) -> String {
    format!("urn:uuid:{id}")
}

fn bundle(kind: &str, resources: &[Value]) -> Value {
    let entries: Vec<Value> = resources
        .iter()
        .map(|resource| {
            json!({"fullUrl": format!("urn:uuid:{}", resource["id"].as_str().unwrap()), "resource": resource,
                   "request": {"method": "POST"}})
        })
        .collect();
    json!({"resourceType": "Bundle", "type": kind, "entry": entries})
}

fn ndjson<'a>(resources: impl IntoIterator<Item = &'a Value>) -> String {
    resources.into_iter().map(|resource| format!("{resource}\n")).collect()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

const EXPECTED: [&str; 3] = [
    "e1 of p1: SNOMED:1 SNOMED:5 | RXNORM:77 | LOINC:L1//1-of-2 LOINC:L2=SNOMED:20 LOINC:L3=fine, SNOMED:5>RXNORM:77, readmission=true, mortality=false",
    "e2 of p1: SNOMED:1 | SNOMED:10 | LOINC:L1//2-of-2, SNOMED:1>SNOMED:10, readmission=?, mortality=true",
    "e3 of p2: SNOMED:2 | RXNORM:88 RXNORM:99 | , SNOMED:2>RXNORM:88, readmission=?, mortality=false",
];

#[test]
fn bundles_and_lines_give_the_same_dataset() {
    let home = tempfile::tempdir().unwrap();
    // Pretty, by patient, with references inside of the bundle; beside it a file that is not read.
    let all = resources(urn);
    write(
        home.path(),
        &[
            ("bundles/a.json", &format!("{:#}", bundle("transaction", &all[..9]))),
            ("bundles/b.json", &bundle("collection", &all[9..]).to_string()),
            ("bundles/readme.txt", "Not FHIR"),
        ],
    );
    // A file per type, one of them in parts, others packed, a blank line, and a byte order mark.
    let all = resources(relative);
    let of = |kind: &str| -> Vec<&Value> {
        all.iter().filter(|resource| resource["resourceType"] == kind).collect()
    };
    write(
        home.path(),
        &[
            ("bulk/Patient.ndjson", &format!("\u{feff}{}", ndjson(of("Patient")))),
            ("bulk/Encounter.000.ndjson", &ndjson(of("Encounter").into_iter().take(2))),
            ("bulk/Encounter.001.ndjson", &format!("\n{}\n", ndjson(of("Encounter").into_iter().skip(2)))),
            ("bulk/Condition.jsonl", &ndjson(of("Condition"))),
            ("bulk/Procedure.json", &ndjson(of("Procedure"))),
            ("bulk/Medication.json", &ndjson(of("Medication"))),
            ("bulk/Device.ndjson", ""),
        ],
    );
    let packed = |kind: &str, end: &str| {
        std::fs::write(home.path().join(format!("bulk/{kind}.{end}.gz")), gzip(&ndjson(of(kind)))).unwrap();
    };
    packed("MedicationRequest", "ndjson");
    packed("Observation", "json");

    let mut bundles = json(home.path(), "fhir bundles --out a --lab-bins 2");
    let bulk = json(home.path(), "fhir bulk --out b --lab-bins 2");
    // The organization, and the file of devices with nothing in it, are in one of them.
    assert_eq!((&bundles["resources"]["other"]["read"], &bulk["files_empty"]), (&json!(1), &json!(1)));
    bundles["resources"].as_object_mut().unwrap().remove("other");
    bundles["files_empty"] = json!(1);
    assert_eq!(lines(&home.path().join("a")), EXPECTED);
    assert_eq!(lines(&home.path().join("b")), EXPECTED);
    assert_eq!(bundles, bulk);
    assert_eq!(
        bundles["events_dropped"],
        json!({"entered_in_error": 1, "not_done": 2, "other_category": 2, "refuted": 1, "without_encounter": 1})
    );
    assert_eq!(bundles["rows_unreadable"], json!({}));

    let all = json(home.path(), "fhir bundles --dry-run --observations all --classes IMP");
    assert_eq!(all["dropped"], json!({"other_class": 1}));
    assert_eq!(
        (&all["events_read"], &all["events_dropped"]["other_category"]),
        (&bundles["events_read"], &json!(null))
    );
}

#[test]
fn one_file_absolute_addresses_and_later_versions() {
    let home = tempfile::tempdir().unwrap();
    let mut all = resources(|kind, id| format!("https://clinic.org/fhir/{kind}/{id}/_history/2"));
    // Pages of a search repeat what they include; the later version counts, in whatever order.
    let mut old = all[3].clone();
    old["class"] = json!({"code": "AMB"});
    old["meta"] = json!({"lastUpdated": "2020-01-01T00:00:00Z"});
    all[3]["meta"] = json!({"lastUpdated": "2021-01-01T00:00:00.000+02:00"});
    all.push(old);
    all.push(all[0].clone());
    write(home.path(), &[("search.json", &bundle("searchset", &all).to_string())]);
    json(home.path(), "fhir search.json --out a --lab-bins 2");
    assert_eq!(lines(&home.path().join("a")), EXPECTED);

    // The address of an entry need not be made of the id of its resource, which it may lack before it is
    // stored.
    let mut all = resources(urn);
    for resource in &mut all {
        let id = resource["id"].as_str().unwrap().to_owned();
        if resource["resourceType"] == "Condition" {
            resource["id"] = json!(format!("stored-{id}"));
        }
        resource["address"] = json!(id);
    }
    all[4].as_object_mut().unwrap().remove("id");
    let entries: Vec<Value> = all
        .iter()
        .map(|resource| {
            json!({"fullUrl": format!("urn:uuid:{}", resource["address"].as_str().unwrap()), "resource": resource})
        })
        .collect();
    let text = json!({"entry": entries, "type": "transaction", "resourceType": "Bundle"}).to_string();
    write(home.path(), &[("transaction", &text)]);
    json(home.path(), "fhir transaction --out b --lab-bins 2");
    assert_eq!(lines(&home.path().join("b")), EXPECTED);
}

#[test]
fn labels_are_unknown_where_the_record_does_not_say() {
    let home = tempfile::tempdir().unwrap();
    let encounter = |id: &str, patient: &str, more: Value| {
        let mut encounter = json!({
            "resourceType": "Encounter", "id": id, "subject": {"reference": format!("Patient/{patient}")},
            "class": {"code": "IMP"}, "period": {"start": "2020-01-01", "end": "2020-01-03"},
            // What an encounter treats is a diagnosis of it.
            "diagnosis": [{"condition": {"reference": "Condition/c"}}],
        });
        encounter.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        encounter
    };
    let mut all = vec![
        json!({"resourceType": "Condition", "id": "c", "code": snomed("1")}),
        json!({"resourceType": "Patient", "id": "year", "deceasedDateTime": "2020"}),
        json!({"resourceType": "Patient", "id": "yes", "deceasedBoolean": true}),
        json!({"resourceType": "Patient", "id": "no", "deceasedBoolean": false}),
        json!({"resourceType": "Patient", "id": "day", "deceasedDateTime": "2020-01-03"}),
        encounter("e1", "year", json!({})),
        encounter("e2", "yes", json!({"period": {"start": "2020-01-01"}})),
        encounter("e3", "no", json!({})),
        encounter("e4", "day", json!({})),
        encounter("e5", "nobody", json!({})),
        // A stay in a ward of the third, and an encounter that never was.
        encounter(
            "e6",
            "no",
            json!({"partOf": {"reference": "Encounter/e3"}, "period": {"start": "2020-01-02"}}),
        ),
        encounter("e7", "no", json!({"status": "entered-in-error"})),
        encounter("e8", "no", json!({"status": "cancelled"})),
        // The records go on for more than 30 days.
        encounter("e9", "no", json!({"class": {"code": "AMB"}, "period": {"start": "2020-03-01"}})),
    ];
    for encounter in 1..=8 {
        all.push(json!({"resourceType": "Procedure", "id": format!("x{encounter}"), "code": snomed("10"),
                        "encounter": {"reference": format!("Encounter/e{encounter}")}}));
    }
    write(home.path(), &[("f/all.ndjson", &ndjson(&all))]);
    let counts = json(home.path(), "fhir f --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "e1 of year: SNOMED:1 | SNOMED:10 | , readmission=?, mortality=?",
            "e2 of yes: SNOMED:1 | SNOMED:10 | , readmission=?, mortality=?",
            "e3 of no: SNOMED:1 | SNOMED:10 | , readmission=false, mortality=false",
            "e4 of day: SNOMED:1 | SNOMED:10 | , readmission=?, mortality=true",
            "e5 of nobody: SNOMED:1 | SNOMED:10 | , readmission=false, mortality=?",
            "e6 of no: SNOMED:1 | SNOMED:10 | , readmission=?, mortality=false",
        ]
    );
    assert_eq!(counts["dropped"], json!({"entered_in_error": 1, "not_done": 1, "too_few_treatment": 1}));
}

/// Runs a command that must fail, and returns the first line that it says.
fn failure(folder: &Path, line: &str) -> String {
    let before = names(folder);
    let output = prepare(folder, line).assert().code(2).stdout_eq("").get_output().stderr.clone();
    assert_eq!(names(folder), before, "nothing is left behind");
    let said = String::from_utf8(output).unwrap();
    assert!(!said.contains(SECRET) && !said.contains("panicked"), "{said}");
    said.lines().next().unwrap().to_owned()
}

#[test]
fn broken_json_is_placed() {
    let home = tempfile::tempdir().unwrap();
    let all = resources(relative);
    let pretty = format!("{:#}", bundle("collection", &all));
    let rows = ndjson(&all);
    let packed = gzip(&rows.repeat(50));
    let lines = pretty[..pretty.len() / 2].lines().count();
    let deep = format!("{{\"resourceType\":\"Patient\",\"x\":{}1{}}}", "[".repeat(300), "]".repeat(300));
    let mut no_text = rows.clone().into_bytes();
    no_text.extend(format!("{{\"resourceType\":\"Patient\",\"id\":\"{SECRET}").as_bytes());
    no_text.extend(b"\xe9\"}\n");
    let cases: [(&str, Vec<u8>, String); 9] = [
        ("f/a.json", pretty[..pretty.len() / 2].into(), format!("it is cut off at line {lines}")),
        ("f/a.ndjson", rows[..rows.len() - 9].into(), format!("it is cut off at line {}", all.len())),
        (
            "f/a.ndjson",
            format!("{}\n{{\"id\": \"{SECRET}\" 5}}\n", all[0]).into(),
            "line 2, column 23: expected `,` or `}`".into(),
        ),
        ("f/a.json", format!("{SECRET}\n").into(), "line 1, column 1: expected value".into()),
        ("f/a.ndjson", deep.into(), "line 1, column 157: recursion limit exceeded".into()),
        ("f/a.ndjson", no_text, format!("line {} is not UTF-8 text", all.len() + 1)),
        ("f/a.json", b"\xff{}".into(), "line 1 is not UTF-8 text".into()),
        ("f/a.ndjson.gz", packed[..packed.len() / 2].into(), "it is cut off".into()),
        ("f/a.json.gz", b"{}".into(), "it cannot be unpacked".into()),
    ];
    for (name, bytes, problem) in cases {
        let folder = tempfile::tempdir_in(home.path()).unwrap();
        std::fs::create_dir(folder.path().join("f")).unwrap();
        std::fs::write(folder.path().join(name), bytes).unwrap();
        assert_eq!(
            failure(folder.path(), "fhir f --out data"),
            format!("error: {name} is damaged: {problem}")
        );
    }
}

#[test]
fn what_is_no_resource_is_left_out_and_counted() {
    let home = tempfile::tempdir().unwrap();
    let mut all = resources(relative);
    let wrong = [
        json!({"resourceType": "Condition", "code": snomed(SECRET)}),
        json!({"resourceType": "Condition", "id": "w1", "code": {"coding": [{"code": 4711}]}}),
        json!({"resourceType": "Condition", "id": "w2", "code": {"coding": [{"code": "1"}, {"code": 4711}]}}),
        json!({"resourceType": "Encounter", "id": SECRET, "period": {"start": SECRET}}),
        json!({"resourceType": "Bundle", "id": "w3", "entry": []}),
        json!({"id": SECRET}),
    ];
    all.extend(wrong.clone());
    let entries: Vec<Value> = all.iter().map(|resource| json!({"resource": resource})).collect();
    let text = json!({"resourceType": "Bundle", "entry": entries}).to_string();
    write(
        home.path(),
        &[("f/a.json", &text), ("f/package.json", "{\n  \"name\": 1\n}"), ("f/z.json", "[1]")],
    );
    let counts = json(home.path(), "fhir f --dry-run");
    assert_eq!(
        counts["rows_unreadable"],
        json!({"Bundle.entry": 1, "Condition.code.coding.code": 2, "Condition.id": 1, "Encounter.period.start": 1, "resource": 3})
    );
    assert_eq!(counts["encounters_kept"], 3);
    let output = prepare(home.path(), "fhir f --dry-run").assert().success().get_output().stdout.clone();
    let said = String::from_utf8(output).unwrap();
    for expected in [
        "f/a.json: line 1: entry 23: `id`: is missing",
        "f/a.json: line 1: entry 24: `code.coding[0].code`: expected text",
        "f/a.json: line 1: entry 26: `period.start`: expected a date or time",
        "f/a.json: line 1: entry 27: `entry`: a bundle inside of a bundle is not read",
        "f/a.json: line 1: entry 28: expected a FHIR resource",
    ] {
        assert!(said.contains(&format!(" rows left out, the first: {expected}\n")), "{expected}\n{said}");
    }
    assert!(!said.contains(SECRET), "{said}");
    assert_eq!(
        failure(home.path(), "fhir f --out data --strict"),
        "error: f/a.json: line 1: entry 27: `entry`: a bundle inside of a bundle is not read (refused because of --strict)"
    );
}

#[test]
fn a_place_without_encounters_says_what_it_has() {
    let home = tempfile::tempdir().unwrap();
    let all = resources(relative);
    write(
        home.path(),
        &[
            ("other/a.ndjson", &ndjson(&all[..3])),
            ("none/a.json", &format!("{{\"name\": \"{SECRET}\"}}")),
            ("csv/encounters.csv", "id\n1\n"),
            (
                "r5/a.ndjson",
                "{\"resourceType\": \"Encounter\", \"id\": \"1\", \"class\": [{\"coding\": []}]}",
            ),
            ("empty/a.json", ""),
            ("odd/a.ndjson", "{\"resourceType\": \"JohnSmith\", \"id\": \"1\"}"),
        ],
    );
    for (path, expected) in [
        ("other", "error: other has no resource `Encounter`; it has: Organization, Patient"),
        ("none", "error: none/a.json: line 1: expected a FHIR resource"),
        ("csv", "error: csv has no resource `Encounter`; it has: nothing"),
        ("csv/encounters.csv", "error: csv/encounters.csv is damaged: line 1, column 1: expected value"),
        ("r5", "error: r5/a.ndjson: line 1: `class[0]`: expected text"),
        ("empty", "error: empty has no resource `Encounter`; it has: nothing"),
        ("odd", "error: odd has no resource `Encounter`; it has: nothing"),
    ] {
        assert_eq!(failure(home.path(), &format!("fhir {path} --out data")), expected);
    }
}

#[test]
fn edges_of_many_treatments_are_kept() {
    let home = tempfile::tempdir().unwrap();
    // More than the engine takes at a time: it once lost all of them.
    let mut all = vec![];
    for encounter in 0..100 {
        let here = json!({"reference": format!("Encounter/{encounter}")});
        all.push(json!({"resourceType": "Encounter", "id": encounter.to_string(), "subject": {"reference": "Patient/p"}}));
        all.push(json!({"resourceType": "Condition", "id": encounter.to_string(), "code": snomed("1"), "encounter": here}));
        for procedure in 0..90 {
            all.push(json!({
                "resourceType": "Procedure", "id": format!("{encounter}-{procedure}"), "status": "completed",
                "code": snomed(&(100 + procedure % 3).to_string()), "encounter": here,
                "reasonReference": [{"reference": format!("Condition/{encounter}")}],
            }));
        }
    }
    write(home.path(), &[("f/all.ndjson", &ndjson(&all))]);
    let counts = json(home.path(), "fhir f --dry-run");
    assert_eq!((&counts["edges"], &counts["encounters_with_edges"]), (&json!(300), &json!(100)));
}

#[test]
fn resources_that_are_not_asked_for_are_not_read() {
    let home = tempfile::tempdir().unwrap();
    let mut all = resources(relative);
    all.push(json!({"resourceType": "Observation", "id": "w", "valueQuantity": {"value": SECRET}}));
    write(
        home.path(),
        &[("f/a.json", &bundle("collection", &all).to_string()), ("f/b.ndjson", &ndjson(&all[..1]))],
    );
    let counts = json(home.path(), "fhir f --dry-run --strict --observations none");
    assert_eq!((&counts["encounters_kept"], &counts["vocabulary"]["lab"]), (&json!(3), &json!(0)));
    let said = failure(home.path(), "fhir f --dry-run --strict");
    assert!(said.contains("entry 23: `valueQuantity.value`: expected a number (refused"), "{said}");
}

#[test]
fn a_bad_entry_does_not_take_its_bundle_with_it() {
    let home = tempfile::tempdir().unwrap();
    let mut entries: Vec<String> =
        resources(relative).iter().map(|resource| json!({"resource": resource}).to_string()).collect();
    let good = entries.len();
    entries.push(format!("\"{SECRET}\""));
    entries.push(json!({"resource": SECRET}).to_string());
    entries.push(json!({"resource": [{"resourceType": "Condition", "id": SECRET}]}).to_string());
    entries.push(json!({"resource": null, "response": {"status": "201"}}).to_string());
    entries.push(json!({"resource": {"resourceType": "Condition", "id": {"no": SECRET}}}).to_string());
    entries.push(json!({"fullUrl": 5, "resource": {"resourceType": [SECRET]}}).to_string());
    entries.push("null".into());
    entries.push(
        format!("{{\"resource\": {{\"resourceType\": \"Condition\", \"id\": \"a\", \"id\": \"{SECRET}\"}}, \"resource\": 7}}"),
    );
    let text = format!("{{\n\"resourceType\": \"Bundle\", \"entry\": [\n{}\n]}}", entries.join(",\n"));
    write(home.path(), &[("f/a.json", &text), ("f/b.json", "{\"resourceType\": \"Bundle\", \"entry\": 5}")]);
    let counts = json(home.path(), "fhir f --out data --lab-bins 2");
    assert_eq!(lines(&home.path().join("data")), EXPECTED);
    assert_eq!(counts["rows_unreadable"], json!({"Bundle.entry": 1, "Condition.id": 1, "resource": 6}));
    std::fs::remove_file(home.path().join("f/b.json")).unwrap();
    let shown = prepare(home.path(), "fhir f --dry-run").assert().success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    let first =
        format!("6 rows left out, the first: f/a.json: entry {}: expected a FHIR resource\n", good + 1);
    assert!(shown.contains(&first) && !shown.contains(SECRET), "{shown}");
    assert_eq!(
        failure(home.path(), "fhir f --dry-run --strict"),
        format!("error: f/a.json: entry {}: `id`: expected text (refused because of --strict)", good + 5)
    );
}
