use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{gct, home, learned};

/// A run in a folder with a dataset.
fn train(home: &Path, model: &str) {
    let line = "train --data data --task graph_reconstruction --steps 2 --set batch=8 --set model.width=16";
    gct(home, &format!("{line} --quiet --model {model} --out {model}")).assert().success();
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Starts it on a free port; returns where it listens.
fn serve(home: &Path, line: &str) -> (Child, String) {
    let mut child = Command::new(snapbox::cmd::cargo_bin!("gct"))
        .current_dir(home)
        .args(format!("serve {line} --listen 127.0.0.1:0 --json").split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    let address = said["listen"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    (child, address)
}

#[cfg(unix)]
#[test]
fn it_serves_until_it_is_asked_to_stop() {
    let (_guard, home) = home();
    train(&home, "gct");
    for (signal, quiet) in [("-TERM", ""), ("-INT", " --quiet")] {
        let (mut child, address) = serve(&home, &format!("gct{quiet}"));
        assert!(get(&address, "/healthz?who=4711").starts_with("HTTP/1.1 200"));
        assert!(get(&address, "/v1/model").contains("\"graph_reconstruction\""));
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let lines: Vec<&str> = stderr.lines().collect();
        match (quiet, &lines[..]) {
            ("", [first, health, model]) => {
                assert_eq!(*first, format!("listening on http://{address}"));
                assert!(health.starts_with("GET /healthz 200 ") && model.starts_with("GET /v1/model 200 "));
            }
            (" --quiet", []) => {}
            _ => panic!("{stderr}"),
        }
    }
}

/// The dataset again, as if it came from a hospital.
fn make_real(home: &Path) {
    use gct::dataset::{Dataset, Source, Writer};
    use gct::files::Overwrite;
    let dataset = Dataset::open(&home.join("data")).unwrap();
    let (vocabulary, labels) = (dataset.vocabulary().clone(), dataset.manifest().labels.clone());
    let mut writer = Writer::create(&home.join("real"), Overwrite::Refuse, vocabulary, labels).unwrap();
    writer.write(&dataset.encounters().unwrap().collect::<gct::Result<Vec<_>>>().unwrap()).unwrap();
    writer.finish(Source { kind: "sql".into(), ..dataset.manifest().source.clone() }).unwrap();
}

/// The report that the page of a server shows, and what the server said before it listened.
fn served_report(home: &Path, line: &str) -> (serde_json::Value, String) {
    let (mut child, address) = serve(home, line);
    let mut stream = TcpStream::connect(&address).unwrap();
    let headers = format!("Host: {address}\r\nAuthorization: Bearer s3cret\r\nConnection: close");
    write!(stream, "GET /page/report.json HTTP/1.1\r\n{headers}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    child.kill().unwrap();
    let said = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
    child.wait().unwrap();
    (serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap(), said)
}

#[cfg(unix)]
#[test]
fn of_real_patients_the_page_shows_no_small_counts_unless_told_otherwise() {
    use std::os::unix::fs::PermissionsExt;
    let (_guard, home) = home();
    make_real(&home);
    let line = "train --data real --task graph_reconstruction --steps 2 --set batch=8 --set model.width=16";
    gct(&home, &format!("{line} --quiet --model gct --out run")).assert().success();
    fs::write(home.join("token"), "s3cret").unwrap();
    fs::set_permissions(home.join("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let smallest = |report: &serde_json::Value| {
        let run = &report["runs"][0];
        let codes = run["codes"]["count"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap());
        let links = run["links"].as_array().unwrap().iter();
        codes.chain(links.map(|link| link["encounters"].as_u64().unwrap())).min().unwrap()
    };
    for (line, min_cell, encounters) in [
        ("run", 11, 0),
        ("run --token-file token", 11, 0),
        ("run --encounters 0", 11, 0),
        ("run --min-cell 5", 5, 0),
        ("run --min-cell 0", 0, 0),
        ("run --encounters 3", 0, 3),
        ("run --encounters 3 --min-cell 1", 1, 3),
    ] {
        let (report, said) = served_report(&home, line);
        assert_eq!(report["min_cell"], min_cell, "{line}");
        assert_eq!(report["runs"][0]["encounters"].as_array().unwrap().len(), encounters, "{line}");
        assert!(if min_cell > 1 { smallest(&report) >= min_cell } else { smallest(&report) < 5 }, "{line}");
        assert_eq!(said.contains("no count from 1 to 10"), min_cell == 11, "{line}: {said}");
    }
    gct(&home, "serve run --listen 127.0.0.1:0 --encounters 3 --min-cell 11").assert().code(2).stdout_eq("");
    train(&home, "gct");
    let (report, said) = served_report(&home, "gct");
    assert_eq!((&report["min_cell"], said.lines().count()), (&0.into(), 2), "{said}");
    assert!(!report["runs"][0]["encounters"].as_array().unwrap().is_empty());
}

#[test]
fn what_cannot_be_served() {
    let (_guard, home) = home();
    train(&home, "gct");
    train(&home, "gcn");
    fs::write(home.join("empty"), "").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(home.join("empty"), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // What is wrong with the address is said before the data are looked at.
    let at_taken = format!("gct --data none --listen {}", taken.local_addr().unwrap());
    for (line, error, hint) in [
        (at_taken.as_str(), "error: cannot listen on 127.0.0.1:", "hint: another program listens there"),
        ("gct --data none --listen 0.0.0.0:0", "error: 0.0.0.0:0 can be reached", "--token-file FILE"),
        (
            "gcn --listen 127.0.0.1:0",
            "error: the model gcn must be given the true edges",
            "hint: serve a run of gct",
        ),
        (
            "gct --listen 0.0.0.0:0",
            "error: 0.0.0.0:0 can be reached from other machines",
            "--token-file FILE",
        ),
        ("gct --token-file empty", "error: empty: the file is empty", "hint: make one with"),
        ("gct --token-file none", "error: cannot read none: ", "hint: make one with"),
        ("data", "error: data is not a run", "hint: "),
        ("gct --listen nowhere", "error: invalid value 'nowhere'", "--listen"),
        ("gct --max-codes 0", "error: invalid value '0'", "--max-codes"),
    ] {
        let assert = gct(&home, &format!("serve {line}")).assert().code(2).stdout_eq("");
        let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(stderr.starts_with(error) && stderr.contains(hint), "{line}: {stderr}");
    }
}

#[test]
fn answers_of_a_calibrated_run_are_calibrated() {
    let (_guard, home) = learned();
    gct(&home, "calibrate run").assert().success();
    let codes = r#""diagnosis": ["D_1", "D_2"], "treatment": ["T_1"], "lab": ["L_1"]"#;
    fs::write(home.join("new.jsonl"), format!("{{\"id\": \"E1\", {codes}}}")).unwrap();
    let body = format!(r#"{{"encounters": [{{{codes}}}]}}"#);
    let mut probabilities = Vec::new();
    for (flags, calibrated) in [("", "\"calibrated\":\"platt\""), (" --raw", "\"calibrated\":null")] {
        let rows = gct(&home, &format!("predict run --data new.jsonl --out -{flags}")).assert().success();
        let rows = String::from_utf8(rows.get_output().stdout.clone()).unwrap();
        let row: serde_json::Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
        let (mut child, address) = serve(&home, &format!("run --no-page --quiet{flags}"));
        assert!(get(&address, "/v1/model").contains(calibrated), "{flags}");
        let mut stream = TcpStream::connect(&address).unwrap();
        let headers = format!("Host: {address}\r\nContent-Type: application/json\r\nConnection: close");
        let length = body.len();
        write!(stream, "POST /v1/predict HTTP/1.1\r\n{headers}\r\nContent-Length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let answer: serde_json::Value =
            serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        let served = &answer["predictions"][0]["answers"][0]["probability"];
        assert_eq!(*served, row["predicted_boolean_probability"], "{flags}");
        probabilities.push(served.clone());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_ne!(probabilities[0], probabilities[1]);
}
