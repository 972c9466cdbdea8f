//! Who may ask.

use std::fs;
use std::net::SocketAddr;

use gct::infer::Which;
use gct::job::Job;
use gct::report::Options;
use gct::split::SplitPart;
use gct_serve::{Bound, Error, Page, Server, Settings, Token};

use crate::home::{Home, Served, home};

fn token(home: &Home) -> Token {
    let file = home.path().join(format!("token-{:?}", std::thread::current().id()));
    fs::write(&file, "s3cret\n").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    }
    Token::read(&file).unwrap()
}

#[test]
fn without_the_token_there_is_no_answer() {
    let home = home();
    let served =
        Served::with(home.run("graph_reconstruction"), |settings| settings.token = Some(token(&home)), None);
    let ask = |path: &str, headers: &str| {
        let mut client = served.client();
        client.send_head("GET", path, headers);
        client.answer()
    };
    for path in ["/v1/model", "/v1/predict", "/metrics", "/openapi.json", "/page/report.json", "/nothing"] {
        for wrong in [
            "",
            "Authorization: Bearer s3cre\r\n",
            "Authorization: Basic s3cret\r\n",
            "Authorization: Bearer s3cret\r\nAuthorization: Bearer other\r\n",
        ] {
            let answer = ask(path, wrong);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            let (status, error, _) = answer.refusal();
            assert_eq!((status, error.as_str()), (401, "the token is missing or wrong"), "{path} {wrong}");
        }
    }
    assert_eq!(ask("/v1/model", "Authorization: Bearer s3cret\r\n").status, 200);
    assert_eq!(ask("/healthz", "").status, 200);
    assert_eq!(ask("/", "").status, 200);
    // With a token any name of the machine is good.
    let mut client = served.client();
    client.send(b"GET /v1/model HTTP/1.1\r\nHost: models.example\r\nAuthorization: Bearer s3cret\r\n\r\n");
    assert_eq!(client.answer().status, 200);
}

#[test]
fn without_a_token_only_names_of_this_machine_are_answered() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    for (host, status) in [
        ("Host: localhost\r\n", 200),
        ("Host: 127.0.0.1:1\r\n", 200),
        ("Host: [::1]:8080\r\n", 200),
        ("Host: evil.example\r\n", 421),
        ("Host: localhost.evil.example:8080\r\n", 421),
        ("Host: localhost\r\nHost: evil.example\r\n", 421),
        ("", 421),
    ] {
        for path in ["/healthz", "/", "/v1/model"] {
            let mut client = served.client();
            client.send(format!("GET {path} HTTP/1.1\r\n{host}\r\n").as_bytes());
            assert_eq!(client.answer().status, status, "{host} {path}");
        }
    }
}

#[test]
fn other_machines_need_a_token_and_edges_cannot_be_asked_for() {
    let home = home();
    let open: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let start = |task, model, settings| {
        Bound::new(settings)
            .and_then(|bound| Server::start(home.run_of(task, model), bound, None))
            .map(|_| ())
    };
    let error =
        start("graph_reconstruction", "gct", Settings { listen: open, ..Settings::default() }).unwrap_err();
    assert!(matches!(error, Error::TokenNeeded { .. }), "{error}");
    let settings = Settings { listen: open, token: Some(token(&home)), ..Settings::default() };
    assert!(start("graph_reconstruction", "gct", settings).is_ok());
    let error = start("graph_reconstruction", "gcn", Settings::default()).unwrap_err();
    assert!(matches!(error, Error::NeedsEdges { model: "gcn" }), "{error}");
    let served = Served::of(&home, "graph_reconstruction");
    let taken = Settings { listen: served.address, ..Settings::default() };
    let error = start("graph_reconstruction", "gct", taken).unwrap_err();
    assert!(error.to_string().starts_with("cannot listen on 127.0.0.1:"), "{error}");
}

#[test]
fn every_answer_has_the_headers_that_keep_browsers_safe() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    for path in ["/", "/healthz", "/v1/model", "/metrics", "/openapi.json", "/nothing", "/v1/predict"] {
        let answer = served.client().get(path);
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert_eq!(policy, "default-src 'none'; frame-ancestors 'none'", "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
}

#[test]
fn the_page_is_served_with_its_own_policy_and_explains_its_encounters() {
    let home = home();
    let run = home.run("diagnosis_treatment");
    let dataset = run.dataset().unwrap();
    let options = Options { encounters: 4, ..Options::default() };
    let page = Page::gather(&run, &dataset, Which::Part(SplitPart::Test), options, &Job::silent()).unwrap();
    let served = Served::with(run, |_| {}, Some(page));
    let get = |path: &str| served.client().get(path);
    assert!(get("/").text().contains(r#"{"live":true}"#));
    let policy = get("/").header("content-security-policy").unwrap().to_owned();
    assert!(policy.contains("script-src 'sha256-") && policy.contains("frame-ancestors 'none'"), "{policy}");
    let report = get("/page/report.json").json();
    let rows = report["runs"][0]["encounters"].as_array().unwrap();
    assert_eq!((report["live"].as_bool(), rows.len()), (Some(true), 4));
    assert_eq!(report["runs"][0]["matrices"], serde_json::Value::Null);
    for (number, row) in (1..).zip(rows) {
        let explanation = get(&format!("/page/runs/0/encounters/{number}")).json();
        assert_eq!(
            explanation["nodes"].as_array().unwrap().len(),
            1 + row["codes"].as_array().unwrap().len()
        );
        assert_eq!(explanation["edges"], row["edges"]);
        for (told, listed) in
            explanation["answers"].as_array().unwrap().iter().zip(row["answers"].as_array().unwrap())
        {
            assert_eq!((&told["what"], &told["truth"]), (&listed["what"], &listed["truth"]));
            let apart = told["probability"].as_f64().unwrap() - listed["probability"].as_f64().unwrap();
            assert!(apart.abs() <= 5.1e-5, "{told} {listed}");
        }
    }
    for path in [
        "/page/runs/1/encounters/1",
        "/page/runs/0/encounters/5",
        "/page/runs/0/encounters/0",
        "/page/runs/-1/encounters/1",
    ] {
        assert_eq!(get(path).refusal().0, 404, "{path}");
    }
}
