use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{gct, home};

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
