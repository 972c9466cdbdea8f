//! Files of weights: what is written is read, what is damaged is refused, and `docs/weights.md` computes what
//! we do.

use std::fs;
use std::path::Path;

use gct::batch::{EmbeddingRows, Example};
use gct::files::Overwrite;
use gct::model::{Config, GctConfig, Model};
use gct::prior::{Counter, MatrixSettings};
use gct::question::HeadConfig;
use gct::record::PerKind;
use serde_json::json;

use crate::fixture;

fn rows() -> EmbeddingRows {
    EmbeddingRows::new(PerKind { diagnosis: 3, treatment: 4, lab: 2, ..PerKind::default() })
}

fn model() -> Model<f32> {
    let config = Config::Gct(GctConfig { width: 8, ..GctConfig::default() });
    Model::new(&config, &HeadConfig::Labels { count: 2 }, rows(), 1).unwrap()
}

fn example() -> Example {
    let mut counter = Counter::new(PerKind { diagnosis: 3, treatment: 4, lab: 2, ..PerKind::default() });
    fixture::encounters().iter().for_each(|encounter| counter.add(encounter));
    Example::new(&fixture::encounters()[3], rows(), &counter.finish(), &MatrixSettings::default())
}

fn logits(model: &Model<f32>) -> Vec<f32> {
    model.look(&[example()], |view| view.logits().unwrap().to_vec())
}

#[test]
fn every_model_is_read_as_it_was_written() {
    let home = tempfile::tempdir().unwrap();
    for name in Config::NETWORKS {
        let path = home.path().join(name);
        let model =
            Model::<f32>::new(&Config::named(name).unwrap(), &HeadConfig::Labels { count: 2 }, rows(), 4)
                .unwrap();
        model.save(&path, Overwrite::Refuse).unwrap();
        let again = Model::load(&path).unwrap();
        assert_eq!(again.config(), model.config());
        assert_eq!(again.head(), model.head());
        assert_eq!(again.embedding_rows(), model.embedding_rows());
        assert_eq!(again.weights().values(), model.weights().values());
        let bytes = fs::read(&path).unwrap();
        again.save(&path, Overwrite::Replace).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes, "the same weights make the same bytes");
    }
}

#[test]
fn a_damaged_file_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("weights");
    model().save(&path, Overwrite::Refuse).unwrap();
    let whole = fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        Model::load(&path).err().unwrap().to_string()
    };
    for cut in [0, 7, 8, 100, whole.len() - 4, whole.len() - 1] {
        let message = refused(&whole[..cut]);
        assert!(message.contains("is not a file of weights"), "{message}");
    }
    let mut infinite = whole.clone();
    let last = infinite.len() - 4;
    infinite[last..].copy_from_slice(&f32::INFINITY.to_le_bytes());
    assert!(refused(&infinite).contains("not finite"));
    let mut other = whole.clone();
    other[last] ^= 1;
    assert!(refused(&other).contains("its numbers are not those that were written"));
    let mut other = whole.clone();
    let name = whole.windows(14).position(|bytes| bytes == b"blocks.0.value").unwrap();
    other[name + 7] = b'9';
    assert!(refused(&other).contains("it has no `blocks.0.value`"));
    // The same length, so that the header still fits.
    let changed = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = whole.windows(from.len()).position(|bytes| bytes == from.as_bytes()).unwrap();
        let mut other = whole.clone();
        other[at..at + to.len()].copy_from_slice(to.as_bytes());
        refused(&other)
    };
    assert!(changed("\\\"format\\\":1", "\\\"format\\\":7").contains("it has format 7"));
    assert!(changed("\\\"treatment\\\":4", "\\\"treatment\\\":9").contains("for 14 codes"));
    assert!(changed("\\\"width\\\":8", "\\\"width\\\":7").contains("expected F32 [11, 7]"));
    assert!(changed("\\\"blocks\\\":3", "\\\"blocks\\\":2").contains("does not have"));
    assert!(changed("{\"gct\":", "{\"tgc\":").contains("another program wrote it"));
    assert!(matches!(model().save(&path, Overwrite::Refuse), Err(gct::Error::OutputExists { .. })));
    let mut broken = model();
    broken.weights_mut().update(|values| values[5] = f32::NAN);
    fs::write(&path, &whole).unwrap();
    assert!(broken.save(&path, Overwrite::Replace).unwrap_err().to_string().contains("not finite"));
    assert_eq!(fs::read(&path).unwrap(), whole, "what was there stays");
}

/// The files that `reference/test_weights.py` computes with are those that this program writes.
#[test]
fn the_files_for_python_are_up_to_date() {
    let home = tempfile::tempdir().unwrap();
    let (example, model) = (example(), model());
    model.save(&home.path().join("gct.safetensors"), Overwrite::Refuse).unwrap();
    let nodes = example.nodes();
    let mut prior = vec![0.0; nodes * nodes];
    example.visit.allowed.expand(&example.visit.prior, &mut prior);
    // Without context: visit 0, diagnosis 1, treatment 2, lab 3.
    let kinds: Vec<usize> =
        (0..nodes).map(|node| example.visit.ranges.locate(node).0.index().saturating_sub(1)).collect();
    let case = json!({
        "ids": example.visit.ids,
        "kinds": kinds,
        "prior": prior.chunks(nodes).collect::<Vec<_>>(),
        "logits": logits(&model),
    });
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/weights");
    let read = |name: &str| fs::read(kept.join(name)).unwrap_or_default();
    let old: serde_json::Value = serde_json::from_slice(&read("example.json")).unwrap_or_default();
    // The last bits of logits depend on the processor.
    let alike = (0..2).all(|at| {
        let logit = |of: &serde_json::Value| of["logits"][at].as_f64().unwrap_or(f64::NAN);
        (logit(&old) - logit(&case)).abs() < 1e-5
    });
    let same = ["ids", "kinds", "prior"].iter().all(|key| old[key] == case[key]);
    let weights = fs::read(home.path().join("gct.safetensors")).unwrap();
    if weights != read("gct.safetensors") || !alike || !same {
        fs::write(home.path().join("example.json"), format!("{case:#}\n")).unwrap();
        panic!("copy {}/* to {} if the change is meant", home.keep().display(), kept.display());
    }
}
