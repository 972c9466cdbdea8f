//! What is refused, and that a refusal repeats nothing of the request.

use std::io::Write;

use serde_json::json;

use crate::home::{Served, home};

/// Stands in every wrong request, and in no answer.
const SECRET: &str = "patient-4711";

#[test]
fn bodies_that_are_wrong() {
    let home = home();
    let served = Served::of(&home, "masked_diagnosis");
    let deep = format!("{{\"encounters\": {}\"{SECRET}\"", "[".repeat(100_000));
    let many_codes = json!({"encounters": [{"lab": vec![SECRET; 5000]}]}).to_string();
    let many = format!("{{\"encounters\": [{}{{}}]}}", "{},".repeat(5000));
    let latin = b"{\"encounters\": [{\"diagnosis\": [\"patient-4711 \xff\"]}]}";
    let wrong: Vec<(&[u8], u16, &str)> = vec![
        (b"", 400, "the body is not JSON: line 1, column 0"),
        (b"patient-4711", 400, "the body is not JSON: line 1, column 1"),
        (b"{\"encounters\": [{\"diagnosis\": [\"patient-4711\"", 400, "the body is not JSON"),
        (b"{\"encounters\": []} patient-4711", 400, "the body is not JSON: line 1, column 20"),
        (latin, 400, "the body is not JSON"),
        (b"\xff\xfe", 400, "the body is not JSON"),
        (deep.as_bytes(), 422, "the body has another shape than expected"),
        (b"[]", 422, "the body has another shape"),
        (b"{}", 422, "the body has another shape"),
        (b"null", 422, "the body has another shape"),
        (b"{\"encounters\": \"patient-4711\"}", 422, "the body has another shape"),
        (b"{\"encounters\": [\"patient-4711\"]}", 422, "the body has another shape"),
        (b"{\"encounters\": [], \"patient-4711\": 1}", 422, "the body has another shape"),
        (b"{\"encounters\": [{\"diagnoses\": []}]}", 422, "the body has another shape"),
        (b"{\"encounters\": [{\"diagnosis\": \"patient-4711\"}]}", 422, "the body has another shape"),
        (b"{\"encounters\": [{\"diagnosis\": [4711]}]}", 422, "the body has another shape"),
        (b"{\"encounters\": [{\"diagnosis\": [null]}]}", 422, "the body has another shape"),
        (b"{\"encounters\": [{\"hide\": 4711}]}", 422, "the body has another shape"),
        (
            b"{\"encounters\": [{\"lab\": [{\"code\": \"patient-4711\", \"unit\": 1}]}]}",
            422,
            "the body has another shape",
        ),
        (
            b"{\"encounters\": [{\"diagnosis\": [{\"code\": \"patient-4711\"}]}]}",
            422,
            "the body has another shape",
        ),
        (
            b"{\"encounters\": [{\"lab\": [{\"code\": \"patient-4711\", \"value\": 1}]}]}",
            422,
            "encounters[0] has a value",
        ),
        (many_codes.as_bytes(), 422, "encounters[0] has more than 512 codes"),
        (many.as_bytes(), 422, "there are more than 1024 encounters"),
        (
            b"{\"encounters\": [{\"diagnosis\": [\"patient-4711\"]}]}",
            422,
            "encounters[0] has no code that may be hidden",
        ),
    ];
    for path in ["/v1/predict", "/v1/explain", "/v1/embed"] {
        for (body, status, expected) in &wrong {
            let (got, error, hint) = served.client().post_bytes(path, body).refusal();
            let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
            assert_eq!(got, *status, "{shown}: {error}");
            assert!(error.starts_with(expected), "{shown}: {error}");
            assert!(
                !hint.is_empty() && !format!("{error}{hint}").contains("4711"),
                "{shown}: {error} {hint}"
            );
        }
    }
}

#[test]
fn what_to_hide_must_be_there() {
    let home = home();
    let masked = Served::of(&home, "masked_diagnosis");
    let run = home.run("masked_diagnosis");
    let [first, second] = [0, 1].map(|id| run.vocabulary().diagnosis[id].code.clone());
    let ask = |served: &Served, hide: &str| {
        let request =
            json!({"encounters": [{"diagnosis": [first.clone()]}, {"diagnosis": [first], "hide": hide}]});
        served.client().post("/v1/predict", &request)
    };
    assert_eq!(ask(&masked, &first).status, 200);
    for hide in [second.as_str(), SECRET] {
        let (status, error, hint) = ask(&masked, hide).refusal();
        assert_eq!(
            (status, error.as_str()),
            (422, "encounters[1].hide is none of the codes that may be hidden and that the run knows")
        );
        assert!(!hint.contains(hide));
    }
    let (status, error, _) = ask(&Served::of(&home, "graph_reconstruction"), &first).refusal();
    assert_eq!((status, error.as_str()), (422, "encounters[1].hide: the task of this run hides nothing"));
}

#[test]
fn an_answer_has_a_limit_too() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    let codes: Vec<String> = home.run("graph_reconstruction").vocabulary().lab[..511]
        .iter()
        .map(|code| code.code.clone())
        .collect();
    let large = json!({"lab": codes});
    assert_eq!(served.client().post("/v1/explain", &json!({"encounters": [large]})).status, 200);
    let (status, error, hint) =
        served.client().post("/v1/explain", &json!({"encounters": [large, large]})).refusal();
    assert_eq!(status, 422);
    assert!(error.contains("more than 2000000 numbers") && hint.contains("fewer"), "{error} {hint}");
}

#[test]
fn other_things_than_json_are_refused() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    for kind in [
        "",
        "Content-Type: text/plain\r\n",
        "Content-Type: application/json2\r\n",
        "Content-Type: \u{fc}\r\n",
    ] {
        let mut client = served.client();
        client.send_head("POST", "/v1/predict", &format!("{kind}Content-Length: 2\r\n"));
        client.send(b"{}");
        let (status, error, hint) = client.answer().refusal();
        assert_eq!((status, error.as_str()), (415, "the body is not declared as JSON"));
        assert!(hint.contains("Content-Type: application/json"));
    }
    let mut client = served.client();
    client.send_head(
        "POST",
        "/v1/predict",
        "Content-Type: Application/JSON ; charset=utf-8\r\nContent-Length: 18\r\n",
    );
    client.send(b"{\"encounters\": []}");
    assert_eq!(client.answer().status, 200);
}

#[test]
fn paths_and_methods_that_do_not_exist() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    for path in [
        "/nothing",
        "/v1/predict/",
        "/v1",
        "/page/report.json",
        "/page/runs/0/encounters/1",
        "/page/runs/x/encounters/y",
    ] {
        let (status, error, _) = served.client().get(path).refusal();
        assert_eq!((status, error.as_str()), (404, "there is nothing at this path"), "{path}");
    }
    let wrong = served.client().get("/v1/predict");
    assert_eq!(wrong.header("allow"), Some("POST"));
    assert_eq!(wrong.refusal().0, 405);
    let mut client = served.client();
    client.send_head("DELETE", "/v1/model", "");
    let wrong = client.answer();
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET,HEAD")));
    // What is not HTTP at all ends the connection.
    let mut client = served.client();
    client.send(b"\x16\x03\x01 hello\r\n\r\n");
    assert!(!String::from_utf8_lossy(&client.rest()).contains("200"));
}

#[test]
fn a_body_of_100_megabytes_is_refused_before_it_has_arrived() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    let megabyte = vec![b' '; 1 << 20];
    // With its length told, and without.
    for framing in ["Content-Length: 104857600\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut client = served.client();
        client.send_head("POST", "/v1/predict", &format!("Content-Type: application/json\r\n{framing}"));
        let (mut writer, chunked) = (client.writer(), framing.starts_with('T'));
        let sent = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                let mut piece = || {
                    if chunked {
                        writer.write_all(b"100000\r\n")?;
                    }
                    writer.write_all(&megabyte)?;
                    if chunked { writer.write_all(b"\r\n") } else { Ok(()) }
                };
                (0..100).take_while(|_| piece().is_ok()).count()
            });
            let (status, error, _) = client.answer().refusal();
            assert_eq!((status, error.as_str()), (413, "the body has more than 8388608 bytes"));
            sending.join().unwrap()
        });
        assert!(sent < 100, "all of it was taken");
    }
    // A client that asks first need not send anything.
    let mut client = served.client();
    client.send_head(
        "POST",
        "/v1/predict",
        "Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 104857600\r\n",
    );
    assert_eq!(client.answer().status, 413);
}

#[test]
fn answers_have_a_limit() {
    let home = home();
    let served =
        Served::with(home.run("graph_reconstruction"), |settings| settings.limits.answers = 3000, None);
    let ask = |path: &str, encounters: usize| {
        served.client().post(path, &json!({"encounters": vec![json!({"lab": [SECRET]}); encounters]}))
    };
    for path in ["/v1/predict", "/v1/explain", "/v1/embed"] {
        assert_eq!(ask(path, 1).status, 200, "{path}");
        let (status, error, _) = ask(path, 200).refusal();
        assert_eq!((status, error.as_str()), (422, "the answer would have more than 3000 bytes"), "{path}");
    }
}
