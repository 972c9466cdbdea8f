"""A run as other tools see it: its curves in TensorBoard, its predictions and vectors in pandas and NumPy."""

import json

import numpy as np
import pandas
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


@pytest.fixture(scope="session")
def train(home, gct):
    """Trains a small model on a task, once."""

    def run(task):
        folder = home / task.replace(":", "-")
        if not folder.exists():
            small = ["--set", "model.width=16", "--set", "validate_every=20", "--set", "learning_rate=0.01"]
            arguments = ["--data", home / "synthetic", "--task", task, "--out", folder, "--steps", 50]
            gct("train", "--quiet", *arguments, *small)
        return folder

    return run


def test_tensorboard_shows_what_was_validated(train):
    folder = train("label:d1_m1")
    entries = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in entries] == [20, 40, 50]
    seen = EventAccumulator(str(folder)).Reload()
    for tag, key in [
        ("train/loss", "train_loss"),
        ("validation/loss", "validation_loss"),
        ("validation/aucpr", "value"),
        ("validation/auroc", "auroc"),
    ]:
        expected = [(entry["step"], np.float32(entry[key])) for entry in entries]
        assert [(event.step, np.float32(event.value)) for event in seen.Scalars(tag)] == expected, tag


def test_figures_are_those_of_the_predictions(train, gct, tmp_path):
    folder = train("label:d1_m1")
    gct("predict", folder, "--out", tmp_path / "p.parquet")
    table = pandas.read_parquet(tmp_path / "p.parquet")
    assert list(table.columns) == [
        "subject_id",
        "encounter_id",
        "prediction_time",
        "label",
        "boolean_value",
        "predicted_boolean_value",
        "predicted_boolean_probability",
    ]
    truth, probability = table.boolean_value.astype(bool), table.predicted_boolean_probability
    assert ((probability > 0.5) == table.predicted_boolean_value).all()
    report = gct("evaluate", folder, "--bootstrap", 0)
    assert report["encounters"] == len(table)
    assert report["aucpr"] == pytest.approx(average_precision_score(truth, probability), abs=1e-9)
    assert report["auroc"] == pytest.approx(roc_auc_score(truth, probability), abs=1e-9)


def test_edges_are_those_of_the_dataset(train, gct, home, tmp_path):
    folder = train("graph_reconstruction")
    gct("predict", folder, "--split", "all", "--min-probability", 0, "--out", tmp_path / "p.parquet")
    table = pandas.read_parquet(tmp_path / "p.parquet")
    data = pandas.read_parquet(home / "synthetic/encounters").set_index("encounter_id")
    edges = table[table.boolean_value.astype(bool)].groupby("encounter_id").size()
    known = data.apply(
        lambda row: len(row.diagnosis) + len(row.diagnosis_treatment) + len(row.treatment_lab), axis=1
    )
    assert (edges.sort_index() == known.sort_index()).all()
    visit = table[table.cause_kind == "visit"]
    assert (visit.effect_kind == "diagnosis").all() and visit.boolean_value.all()


def test_the_true_diagnosis_is_guessed_as_often_as_the_accuracy_says(train, gct, tmp_path):
    folder = train("masked_diagnosis")
    gct("predict", folder, "--top", 3, "--out", tmp_path / "p.parquet")
    table = pandas.read_parquet(tmp_path / "p.parquet")
    assert (table.groupby("encounter_id")["rank"].apply(list).map(lambda ranks: ranks == [1, 2, 3])).all()
    assert table.groupby("encounter_id").probability.apply(lambda p: p.is_monotonic_decreasing).all()
    first = table[table["rank"] == 1]
    report = gct("evaluate", folder, "--bootstrap", 0)
    assert report["accuracy"] == pytest.approx((first.hidden_diagnosis == first.predicted_diagnosis).mean())


def test_vectors_are_the_same_for_pandas_and_numpy(train, gct, tmp_path):
    folder = train("label:d1_m1")
    for what in [[], ["--what", "codes"]]:
        gct("embed", folder, *what, "--out", tmp_path / "v.parquet", "--force")
        gct("embed", folder, *what, "--out", tmp_path / "v.npy", "--force")
        table, matrix = pandas.read_parquet(tmp_path / "v.parquet"), np.load(tmp_path / "v.npy")
        assert matrix.dtype == np.float32 and matrix.shape == (len(table), 16)
        np.testing.assert_array_equal(np.stack(table.embedding), matrix)
        assert len(np.unique(matrix, axis=0)) > len(matrix) // 2
    assert list(table.columns) == ["kind", "code", "description", "embedding"]
