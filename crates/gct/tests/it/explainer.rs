//! Who causes what: counted, drawn, asked, written down and read again.

use std::path::Path;

use gct::dataset::Dataset;
use gct::explainer::Edges;
use gct::files::Overwrite;
use gct::infer::{Reader, Which};
use gct::ingest::synthetic;
use gct::job::Job;
use gct::metric::Bootstrap;
use gct::model::Config;
use gct::prior::Cells;
use gct::record::Encounter;
use gct::run::{Run, Settings};
use gct::split::SplitPart;

use crate::run::{settings, start};

/// Enough encounters for something to be learned.
fn data(folder: &Path) -> Dataset {
    let mut settings = synthetic::Settings { encounters: 4000, ..Default::default() };
    // As the appendix has it: the label is true in every eighth encounter.
    settings.labels.p_d1 = 0.33;
    gct::synth::run(&settings, folder, Overwrite::Refuse, &Job::silent()).unwrap();
    Dataset::open(folder).unwrap()
}

fn explainer(task: &str, edges: Edges) -> Settings {
    let model = Config::Explainer(gct::explainer::Settings { edges, sweeps: 8 });
    Settings { model, ..settings(task, "explainer") }
}

fn part(run: &Run, dataset: &Dataset, part: SplitPart) -> Vec<Encounter> {
    Reader::new(run, dataset, Which::Part(part)).unwrap().collect::<gct::Result<_>>().unwrap()
}

/// A metric of a run on the test split.
fn metric(run: &Run, dataset: &Dataset, name: &str) -> f64 {
    let test = part(run, dataset, SplitPart::Test);
    let evaluation = run.evaluate(&test, Bootstrap { replicates: 0, seed: 0 }).unwrap();
    evaluation.scores.value(name).unwrap()
}

#[test]
fn edges_are_found_with_and_without_having_seen_one() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home.path().join("data"));
    let train = |name: &str, settings: Settings| {
        let folder = home.path().join(name);
        start(settings, &dataset, &folder, None).unwrap();
        Run::open(&folder).unwrap()
    };
    let [known, hidden] = [("known", Edges::Auto), ("hidden", Edges::Hidden)]
        .map(|(name, edges)| train(name, explainer("graph_reconstruction", edges)));
    let [by_counts, by_draws] = [&known, &hidden].map(|run| metric(run, &dataset, "aucpr"));
    // What conditional probabilities say: below 0.38, see `gct inspect`.
    assert!(by_counts > 0.52, "{by_counts}");
    assert!(by_draws > 0.45, "{by_draws}");
    assert!(by_counts > by_draws, "edges help: {by_counts} {by_draws}");

    // As it is in memory, so it is read, by any number of threads.
    let test = part(&known, &dataset, SplitPart::Test);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    let again = pool.install(|| train("again", explainer("graph_reconstruction", Edges::Hidden)));
    assert_eq!(hidden.predict(&test).unwrap(), again.predict(&test).unwrap());

    // Each treatment has a cause, or none, with a chance.
    let explanation = known.explain(&test[0]).unwrap();
    let causes = explanation.causes.unwrap();
    assert_eq!(causes.len(), test[0].codes.treatment.len() + test[0].codes.lab.len());
    for cause in &causes {
        assert!(cause.cause.is_some() && cause.probability + cause.unexplained <= 1.0 + 1e-5, "{cause:?}");
    }

    let error = known.embed(&test).unwrap_err().to_string();
    assert!(error.contains("an explainer has none"), "{error}");

    // A training encounter is asked about as if it had not been counted.
    let account = known.encoding().prior.account().unwrap();
    let train = part(&known, &dataset, SplitPart::Train);
    let certain = |counted: bool| -> f32 {
        let links = |encounter: &Encounter| account.links(encounter, None, counted);
        let of = |encounter: &Encounter| -> f32 {
            let (links, edges) = (links(encounter), encounter.edges.as_ref().unwrap());
            let treatments = encounter.codes.treatment.len();
            let share =
                |cause: u16, effect: u16| links.orders[usize::from(cause) * treatments + usize::from(effect)];
            edges.diagnosis_treatment.iter().map(|edge| share(edge.cause, edge.effect)).sum::<f32>()
                / edges.diagnosis_treatment.len() as f32
        };
        train.iter().take(300).map(of).sum::<f32>() / 300.0
    };
    let (with, without) = (certain(false), certain(true));
    assert!(with > without + 0.1, "its own edges would give it away: {with} {without}");
}

#[test]
fn labels_and_hidden_diagnoses_are_answered() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home.path().join("data"));
    let found = |task: &str, name: &str| {
        let folder = home.path().join(task);
        let outcome = start(explainer(task, Edges::Auto), &dataset, &folder, None).unwrap();
        assert_eq!(outcome.step, 1, "one fit");
        metric(&Run::open(&folder).unwrap(), &dataset, name)
    };
    assert!(found("diagnosis_treatment", "aucpr") > 0.7);
    let accuracy = found("masked_diagnosis", "accuracy");
    // The most frequent diagnosis is right in 12 to 15 of a hundred.
    assert!(accuracy > 0.15, "{accuracy}");
}

#[test]
fn a_posterior_fills_p_of_a_network() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home.path().join("data"));
    let mut settings = settings("graph_reconstruction", "gcn_p");
    (settings.prior.cells, settings.steps) = (Cells::Posterior, 4);
    let folder = home.path().join("run");
    start(settings, &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let test = part(&run, &dataset, SplitPart::Test);
    let example = run.encoding().example(&gct::sample::Sample::of(&test[0]));
    let (visit, nodes) = (&example.visit, example.nodes());
    let mut p = vec![0.0; nodes * nodes];
    visit.allowed.expand(&visit.prior, &mut p);
    for row in p.chunks(nodes) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let links = &visit.explained.as_ref().unwrap().links;
    let treatments = visit.range(gct::record::CodeKind::Treatment);
    let diagnoses = visit.range(gct::record::CodeKind::Diagnosis);
    // Before rows are scaled, the chance is the same in both directions.
    let order = links.orders[0];
    let column = &p[treatments.start * nodes..][..nodes];
    let scale = column[treatments.start] / 0.5;
    assert!((column[diagnoses.start] - order * scale).abs() < 1e-5);
}

#[test]
fn what_it_does_not_answer_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let dataset = crate::run::data(&home);
    let refused = |settings: Settings| {
        let folder = home.path().join("refused");
        let error = start(settings, &dataset, &folder, None).unwrap_err().to_string();
        assert!(!folder.exists(), "{error}");
        error
    };
    let next = refused(settings("next_diagnoses", "explainer"));
    assert!(next.contains("another model: it predicts edges"), "{next}");
    let sweeps = refused(Settings {
        model: Config::Explainer(gct::explainer::Settings { edges: Edges::Hidden, sweeps: 1 }),
        ..explainer("graph_reconstruction", Edges::Hidden)
    });
    assert!(sweeps.contains("`model.sweeps`: 1 is not allowed"), "{sweeps}");
    let decay = refused(Settings { clip: 1.0, ..explainer("graph_reconstruction", Edges::Auto) });
    assert!(decay.contains("an explainer counts"), "{decay}");
}
