//! Many at once, half-sent, too many, and the end.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gct_serve::shape::Predictions;
use serde_json::{Value, json};

use crate::home::{Home, Served, by_codes, home};

/// Requests, each with another encounter.
fn requests(home: &Home, task: &str, count: usize) -> Vec<Value> {
    let run = home.run(task);
    let encounters = home.encounters(&run, count);
    encounters.iter().map(|encounter| json!({"encounters": [by_codes(&run, encounter)]})).collect()
}

/// An encounter with so many labs.
fn large(home: &Home, labs: usize) -> Value {
    let run = home.run("graph_reconstruction");
    let codes: Vec<&str> = run.vocabulary().lab[..labs].iter().map(|code| code.code.as_str()).collect();
    json!({"lab": codes})
}

#[test]
fn of_64_connections_at_once_each_gets_its_own_answers() {
    let home = home();
    let served = Served::of(&home, "diagnosis_treatment");
    let requests = requests(&home, "diagnosis_treatment", 64);
    let ask = |client: &mut crate::client::Client, request: &Value| -> Predictions {
        let answer = client.post("/v1/predict", request);
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_slice(&answer.body).unwrap()
    };
    let alone: Vec<Predictions> = requests.iter().map(|request| ask(&mut served.client(), request)).collect();
    std::thread::scope(|scope| {
        for start in 0..64 {
            let (served, requests, alone) = (&served, &requests, &alone);
            scope.spawn(move || {
                let mut client = served.client();
                for index in (start..start + 20).map(|index| index % 64) {
                    assert_eq!(ask(&mut client, &requests[index]), alone[index]);
                }
            });
        }
    });
    let metrics = served.client().get("/metrics");
    let counted = |line: &str| assert!(metrics.text().contains(line), "{line}: {}", metrics.text());
    counted("gct_requests_total{route=\"/v1/predict\",status=\"200\"} 1344\n");
    counted("gct_encounters_total 1344\n");
    counted("gct_request_duration_seconds_count{route=\"/v1/predict\"} 1344\n");
    counted("gct_waiting_requests 0\n");
    counted("# EOF\n");
}

#[test]
fn a_request_that_is_half_sent_holds_nobody_up() {
    let home = home();
    let served = Served::with(
        home.run("graph_reconstruction"),
        |settings| {
            settings.limits.header = Duration::from_millis(400);
            settings.limits.request = Duration::from_millis(400);
        },
        None,
    );
    let started = Instant::now();
    let mut half_a_head = served.client();
    half_a_head.send(b"POST /v1/predict HTTP/1.1\r\nHost: loc");
    let mut half_a_body = served.client();
    half_a_body.send_post_head("/v1/predict", 1000);
    half_a_body.send(b"{\"encounters\"");
    let mut idle = served.client();
    assert_eq!(idle.get("/healthz").status, 200);
    // Meanwhile others are served.
    assert_eq!(served.client().post("/v1/predict", &json!({"encounters": [{}]})).status, 200);
    let (status, error, _) = half_a_body.answer().refusal();
    assert_eq!((status, error.as_str()), (408, "the body did not arrive in time"));
    assert!(half_a_body.rest().is_empty());
    assert!(!String::from_utf8_lossy(&half_a_head.rest()).contains("200"));
    assert!(idle.rest().is_empty(), "an idle connection is closed");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn when_the_queue_is_full_clients_are_sent_away() {
    let home = home();
    let served = Served::with(
        home.run("graph_reconstruction"),
        |settings| (settings.limits.queue, settings.limits.batch) = (1, 1),
        None,
    );
    let request = json!({"encounters": vec![large(&home, 400); 20]}).to_string();
    let statuses = Mutex::new(BTreeMap::<u16, usize>::new());
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let answer = served.client().post_bytes("/v1/embed", request.as_bytes());
                if answer.status == 503 {
                    assert_eq!(answer.header("retry-after"), Some("1"));
                    assert_eq!(answer.refusal().1, "too many requests at the moment");
                }
                *statuses.lock().unwrap().entry(answer.status).or_default() += 1;
            });
        }
    });
    let statuses = statuses.into_inner().unwrap();
    assert_eq!(statuses.values().sum::<usize>(), 12);
    assert!(statuses.keys().eq(&[200, 503]), "{statuses:?}");
}

/// Encounters that the model was asked about.
fn encounters_total(served: &Served) -> usize {
    let metrics = served.client().get("/metrics");
    let count = metrics.text().lines().find_map(|line| line.strip_prefix("gct_encounters_total "));
    count.unwrap().parse().unwrap()
}

#[test]
fn small_requests_do_not_wait_for_large_ones() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    let long = json!({"encounters": vec![large(&home, 500); 1024]}).to_string();
    std::thread::scope(|scope| {
        let ask = || served.client().post_bytes("/v1/predict", long.as_bytes()).status;
        let long: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
        while encounters_total(&served) == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let one = json!({"encounters": [{"diagnosis": ["D_1"]}]});
        let many_visits = json!({"encounters": vec![json!({}); 128]});
        let some = json!({"encounters": vec![large(&home, 20); 30]});
        let requests = [("explain", &one), ("predict", &one), ("predict", &many_visits), ("embed", &some)];
        for (path, request) in requests {
            assert_eq!(served.client().post(&format!("/v1/{path}"), request).status, 200, "{path}");
        }
        assert!(long.iter().all(|long| !long.is_finished()), "this test needs larger requests");
        served.stop();
        for long in long {
            assert!([200, 504].contains(&long.join().unwrap()));
        }
    });
}

#[test]
fn large_requests_do_not_take_the_places_of_small_ones() {
    let home = home();
    let served = Served::with(
        home.run("graph_reconstruction"),
        |settings| (settings.limits.queue, settings.limits.request) = (1, Duration::from_secs(5)),
        None,
    );
    let long = json!({"encounters": vec![large(&home, 500); 1024]}).to_string();
    let mut clients = [(); 3].map(|()| served.client());
    for client in &mut clients {
        client.send_post("/v1/embed", long.as_bytes());
    }
    // One is worked on, one waits, one is refused.
    while !served.client().get("/metrics").text().contains("status=\"503\"") {
        std::thread::sleep(Duration::from_millis(5));
    }
    let answer = served.client().post("/v1/explain", &json!({"encounters": [{}]}));
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn who_does_not_wait_any_more_is_not_answered() {
    let home = home();
    let served = Served::with(
        home.run("graph_reconstruction"),
        |settings| settings.limits.request = Duration::from_millis(100),
        None,
    );
    let long = json!({"encounters": vec![large(&home, 500); 1024]}).to_string();
    let mut clients = [(); 2].map(|()| served.client());
    for client in &mut clients {
        client.send_post("/v1/embed", long.as_bytes());
    }
    for client in &mut clients {
        assert_eq!(client.answer().refusal().1, "the answer took too long");
    }
    // What goes through the queue next shows that nothing else is left in it.
    assert_eq!(served.client().post("/v1/explain", &json!({"encounters": [{}]})).status, 200);
    let before = encounters_total(&served);
    assert!(before < 1024, "{before}: the first was given up");
    assert_eq!(served.client().post("/v1/explain", &json!({"encounters": [{}]})).status, 200);
    assert_eq!(encounters_total(&served), before + 1);
}

#[test]
fn an_answer_that_comes_before_the_body_can_be_read() {
    let home = home();
    let served = Served::with(home.run("graph_reconstruction"), |settings| settings.limits.body = 1024, None);
    let mut client = served.client();
    client.send_post("/v1/predict", &vec![b' '; 8 << 20]);
    assert_eq!(client.answer().status, 413);
}

#[test]
fn who_closes_the_sending_side_is_answered() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    let request = requests(&home, "graph_reconstruction", 1).remove(0).to_string();
    for path in ["/v1/predict", "/v1/explain", "/v1/embed"].repeat(20) {
        let mut client = served.client();
        client.send_post(path, request.as_bytes());
        client.writer().shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.answer().status, 200, "{path}");
        assert!(client.rest().is_empty());
    }
}

/// A server that waits for clients to ask again as long as a test takes.
fn patient(home: &Home, connections: usize) -> Served {
    let change = |settings: &mut gct_serve::Settings| {
        settings.limits.connections = connections;
        settings.limits.grace = Duration::from_secs(60);
        settings.limits.shutdown = Duration::from_secs(120);
    };
    Served::with(home.run("graph_reconstruction"), change, None)
}

#[test]
fn every_request_that_was_received_is_answered_after_the_stop() {
    let home = home();
    let served = patient(&home, 1024);
    let requests = requests(&home, "graph_reconstruction", 200);
    let mut clients: Vec<_> = requests.iter().map(|_| served.client()).collect();
    for (client, path) in clients.iter_mut().zip(["/v1/predict", "/v1/explain"].into_iter().cycle()) {
        client.send_post(path, requests[0].to_string().as_bytes());
    }
    served.stop();
    for client in &mut clients {
        let mut answer = client.answer();
        assert_eq!(answer.status, 200);
        // Those that were quicker than the stop can ask again.
        while answer.header("connection") != Some("close") {
            answer = client.get("/healthz");
            assert_eq!(answer.status, 200);
        }
        assert!(client.rest().is_empty());
    }
    served.wait();
}

#[test]
fn clients_that_ask_again_and_again_hear_of_the_end() {
    let home = home();
    let served = patient(&home, 1024);
    let request = requests(&home, "graph_reconstruction", 1).remove(0);
    let asked = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| {
                let mut client = served.client();
                loop {
                    let answer = client.post("/v1/predict", &request);
                    assert_eq!(answer.status, 200);
                    asked.fetch_add(1, Ordering::Relaxed);
                    if answer.header("connection") == Some("close") {
                        break;
                    }
                }
                assert!(client.rest().is_empty());
            });
        }
        while asked.load(Ordering::Relaxed) < 64 {
            std::thread::yield_now();
        }
        served.stop();
    });
    served.wait();
}

#[test]
fn connections_that_wait_to_be_accepted_are_answered_after_the_stop() {
    let home = home();
    let served = patient(&home, 1);
    let request = requests(&home, "graph_reconstruction", 1).remove(0).to_string();
    let mut only = served.client();
    assert_eq!(only.get("/healthz").status, 200);
    let mut waiting: Vec<_> = (0..50).map(|_| served.client()).collect();
    for client in &mut waiting {
        client.send_post("/v1/predict", request.as_bytes());
    }
    served.stop();
    for client in &mut waiting {
        let answer = client.answer();
        assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    }
    assert_eq!(only.get("/healthz").header("connection"), Some("close"));
    served.wait();
}

#[test]
fn what_was_accepted_is_finished_before_the_end() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    let request = requests(&home, "graph_reconstruction", 1).remove(0).to_string();
    let (mut begun, mut idle) = (served.client(), served.client());
    assert_eq!(idle.get("/healthz").status, 200);
    begun.send_post_head("/v1/predict", request.len());
    begun.send(&request.as_bytes()[..10]);
    std::thread::sleep(Duration::from_millis(100));
    served.stop();
    assert!(idle.rest().is_empty(), "an idle connection is closed");
    // Nobody listens any more.
    let started = Instant::now();
    while TcpStream::connect(served.address).is_ok() {
        assert!(started.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(10));
    }
    begun.send(&request.as_bytes()[10..]);
    let answer = begun.answer();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")), "{answer:?}");
    served.wait();
}

#[test]
fn what_is_never_finished_does_not_keep_the_server_from_ending() {
    let home = home();
    let served = Served::with(
        home.run("graph_reconstruction"),
        |settings| settings.limits.shutdown = Duration::from_millis(200),
        None,
    );
    let mut begun = served.client();
    begun.send_post_head("/v1/predict", 1000);
    std::thread::sleep(Duration::from_millis(100));
    served.stop();
    let started = Instant::now();
    served.wait();
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn log_lines_tell_what_was_asked_for_and_nothing_of_it() {
    let home = home();
    let lines = Arc::new(Mutex::new(Vec::<String>::new()));
    let seen = lines.clone();
    let served = Served::with(
        home.run("graph_reconstruction"),
        |settings| settings.log = Some(Box::new(move |line| seen.lock().unwrap().push(line.into()))),
        None,
    );
    served
        .client()
        .post("/v1/predict?who=patient-4711", &json!({"encounters": [{"diagnosis": ["patient-4711"]}]}));
    served.client().get("/patient-4711");
    let mut client = served.client();
    client.send_head("PATIENT4711", "/v1/model", "");
    assert_eq!(client.answer().status, 405);
    let lines = lines.lock().unwrap();
    let expected = ["POST /v1/predict 200 ", "GET other 404 ", "OTHER /v1/model 405 "];
    assert_eq!(lines.len(), expected.len(), "{lines:?}");
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected) && line.ends_with(" ms") && !line.contains("4711"), "{line}");
    }
}
