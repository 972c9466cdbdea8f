"""Our logistic regression beside scikit-learn's, on a column of zeros and ones for each code."""

import json
import struct

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LogisticRegression

KINDS = ("context", "diagnosis", "treatment", "lab")
C = (0.001, 0.1, 3.0)


def multi_hot(folder):
    """Encounters as rows of the embedding without that of the visit, their identifiers, and the dataset's labels."""
    rows = pq.read_table(folder / "encounters.parquet" if (folder / "encounters.parquet").exists() else folder / "encounters")
    kinds = pq.read_table(folder / "vocabulary.parquet")["kind"].to_pylist()
    sizes = [kinds.count(kind) for kind in KINDS]
    matrix = np.zeros((len(rows), sum(sizes)))
    for kind, start in zip(KINDS, np.cumsum([0, *sizes])):
        for row, codes in enumerate(rows[kind].to_pylist() if kind in rows.column_names else []):
            matrix[row, [start + code for code in codes]] = 1
    labels = {name: rows[name].to_numpy(zero_copy_only=False).astype(bool) for name in ("d1_m1", "d2_m1")}
    return matrix, rows["encounter_id"].to_pylist(), labels


def embedding(path):
    """The one parameter of the model, read without a library: docs/weights.md."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensor = json.loads(data[8 : 8 + size])["embedding"]
    begin, end = tensor["data_offsets"]
    return np.frombuffer(data[8 + size + begin : 8 + size + end], "<f4").reshape(tensor["shape"])


@pytest.mark.parametrize("c", C)
@pytest.mark.parametrize("class_weight", [1, 5, "balanced"])
def test_probabilities_and_weights_are_those_of_scikit_learn(gct, home, tmp_path, c, class_weight):
    run, predicted = tmp_path / "run", tmp_path / "predicted.parquet"
    options = ["--set", f"model.c=[{c}]", "--set", f"class_weight={class_weight}"]
    gct("train", "--data", home / "synthetic", "--task", "labels:d2_m1,d1_m1", "--model", "logistic", *options, "--out", run)
    gct("predict", run, "--split", "all", "--out", predicted)
    matrix, encounters, labels = multi_hot(home / "synthetic")
    parts = pq.read_table(home / "split.parquet")
    part = dict(zip(parts["encounter_id"].to_pylist(), parts["part"].to_pylist()))
    train = np.array([part[encounter] == "train" for encounter in encounters])
    ours = pq.read_table(predicted)
    for column, label in enumerate(["d2_m1", "d1_m1"]):
        truth = labels[label]
        positives = truth[train].sum()
        weight = (train.sum() - positives) / positives if class_weight == "balanced" else class_weight
        theirs = LogisticRegression(C=c, class_weight={0: 1, 1: weight}, tol=1e-9, max_iter=20_000)
        theirs.fit(matrix[train], truth[train])
        of_label = ours.filter(np.array(ours["label"].to_pylist()) == label)
        probability = dict(
            zip(of_label["encounter_id"].to_pylist(), of_label["predicted_boolean_probability"].to_pylist())
        )
        got = np.array([probability[encounter] for encounter in encounters])
        assert np.abs(got - theirs.predict_proba(matrix)[:, 1]).max() < 1e-4
        assert 0.01 < got.std() or c < 0.01, "they are not all alike"
        weights = embedding(run / "best.safetensors")[:, column]
        assert np.abs(weights[1:-1] - theirs.coef_[0]).max() < 1e-3
        assert abs(weights[0] - theirs.intercept_[0]) < 1e-3
        assert weights[-1] == 0, "the row of a hidden code"
