//! Small runs, and servers for them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;

use gct::dataset::{Dataset, Source, Writer};
use gct::files::Overwrite;
use gct::infer::{Reader, Which};
use gct::ingest::synthetic;
use gct::job::{Job, Stop};
use gct::record::{Code, CodeKind, Encounter, EncounterId, PerKind, SubjectId};
use gct::run::{Run, Settings};
use gct::train::{self, Execution};
use gct_serve::{Bound, Page, Server};
use serde_json::{Value, json};

use crate::client::Client;

/// A folder with a run for each of [`RUNS`].
pub(crate) struct Home(tempfile::TempDir);

/// Task and model of each run.
pub(crate) const RUNS: [(&str, &str); 6] = [
    ("graph_reconstruction", "gct"),
    ("diagnosis_treatment", "transformer"),
    ("masked_diagnosis", "gct"),
    ("masked_code", "gct"),
    ("label:d1_m1", "shallow"),
    ("labels:d2_m1,d1_m1", "logistic"),
];

static HOME: Mutex<Weak<Home>> = Mutex::new(Weak::new());

/// The folder that tests share as long as one of them needs it.
pub(crate) fn home() -> Arc<Home> {
    let mut shared = HOME.lock().unwrap();
    shared.upgrade().unwrap_or_else(|| {
        let home = Arc::new(Home(tempfile::tempdir().unwrap()));
        home.train();
        *shared = Arc::downgrade(&home);
        home
    })
}

impl Home {
    fn train(&self) {
        let folder = self.0.path().join("data");
        let settings = synthetic::Settings { encounters: 300, ..Default::default() };
        gct::synth::run(&settings, &folder, Overwrite::Refuse, &Job::silent()).unwrap();
        let dataset = Dataset::open(&folder).unwrap();
        for (task, model) in RUNS.into_iter().chain([("graph_reconstruction", "gcn")]) {
            let mut settings = Settings::paper(task.parse().unwrap(), model, "synthetic").unwrap();
            (settings.steps, settings.validate_every, settings.batch) = (3, 3, 8);
            let mut config = serde_json::to_value(&settings.model).unwrap();
            if let Some(width) = config.get_mut("width") {
                *width = 16.into();
            }
            settings.model = serde_json::from_value(config).unwrap();
            let (run, job) = (self.run_folder(task, model), Job::silent());
            train::start(settings, &dataset, &run, Overwrite::Refuse, Execution::default(), &job).unwrap();
        }
    }

    fn run_folder(&self, task: &str, model: &str) -> std::path::PathBuf {
        self.0.path().join(format!("{}-{model}", task.replace([':', ','], "-")))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn run(&self, task: &str) -> Run {
        let (task, model) = RUNS.into_iter().find(|(of, _)| *of == task).unwrap();
        self.run_of(task, model)
    }

    pub(crate) fn run_of(&self, task: &str, model: &str) -> Run {
        Run::open(&self.run_folder(task, model)).unwrap()
    }

    /// The first encounters of the dataset, as a list of codes knows them.
    pub(crate) fn encounters(&self, run: &Run, count: usize) -> Vec<Encounter> {
        let dataset = Dataset::open(&self.0.path().join("data")).unwrap();
        let reader = Reader::new(run, &dataset, Which::All).unwrap();
        reader.take(count).map(|encounter| Encounter::new(encounter.unwrap().codes)).collect()
    }
}

/// A run of data with context: the label `older` is one of its two codes. Values of K up to 4 were one code,
/// and others another.
pub(crate) fn run_with_context(home: &Path) -> Run {
    let code = |code: &str| Code { code: code.into(), description: None, count: 0 };
    let vocabulary = PerKind {
        context: vec![code("age=18-64"), code("age=65-")],
        diagnosis: vec![code("cough"), code("fever")],
        treatment: vec![code("rest")],
        lab: vec![code("K//1-of-2"), code("K//2-of-2")],
    };
    let encounter = |number: u32| Encounter {
        id: EncounterId::new(format!("e{number}")),
        subject: SubjectId::new(format!("s{number}")),
        labels: vec![Some(number % 2 == 1)],
        ..Encounter::new(PerKind {
            context: vec![number % 2],
            diagnosis: vec![number / 2 % 2],
            treatment: vec![0],
            lab: vec![number / 4 % 2],
        })
    };
    let (data, folder) = (home.join("data"), home.join("run"));
    let mut writer = Writer::create(&data, Overwrite::Refuse, vocabulary, vec!["older".into()]).unwrap();
    writer.write(&(0..100).map(encounter).collect::<Vec<_>>()).unwrap();
    let (settings, findings) = (json!({"min_count": 1}), json!({"lab_bounds": {"K": [4]}}));
    writer.finish(Source { kind: "by hand".into(), settings, findings }).unwrap();
    let mut settings = Settings::paper("label:older".parse().unwrap(), "gct", "synthetic").unwrap();
    (settings.steps, settings.validate_every, settings.batch) = (3, 3, 8);
    let (dataset, job) = (Dataset::open(&data).unwrap(), Job::silent());
    train::start(settings, &dataset, &folder, Overwrite::Refuse, Execution::default(), &job).unwrap();
    Run::open(&folder).unwrap()
}

/// An encounter as a request has it.
pub(crate) fn by_codes(run: &Run, encounter: &Encounter) -> Value {
    let codes = |kind: CodeKind| -> Vec<&str> {
        encounter.codes[kind].iter().map(|id| run.vocabulary()[kind][*id as usize].code.as_str()).collect()
    };
    json!({"diagnosis": codes(CodeKind::Diagnosis), "treatment": codes(CodeKind::Treatment), "lab": codes(CodeKind::Lab)})
}

/// A server that is stopped at the end of a test.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    /// Serves the run of a task.
    pub(crate) fn of(home: &Home, task: &str) -> Self {
        Served::with(home.run(task), |_| {}, None)
    }

    /// Serves a run with other settings.
    pub(crate) fn with(run: Run, change: impl FnOnce(&mut gct_serve::Settings), page: Option<Page>) -> Self {
        let mut settings = gct_serve::Settings::default();
        settings.listen.set_port(0);
        change(&mut settings);
        let server = Server::start(run, Bound::new(settings).unwrap(), page).unwrap();
        let (address, stop) = (server.address(), Stop::new());
        let seen = stop.clone();
        let thread = std::thread::spawn(move || server.run(&seen).unwrap());
        Served { address, stop, thread: Some(thread) }
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Asks it to stop, and does not wait.
    pub(crate) fn stop(&self) {
        self.stop.request();
    }

    /// Waits until it has stopped.
    pub(crate) fn wait(mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}
