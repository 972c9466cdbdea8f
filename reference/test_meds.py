"""From a MEDS dataset to predictions that the standard's own tool scores as we do."""

import json
import random
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

SUBJECTS = 600
DATA = pa.schema(
    [
        ("subject_id", pa.int64()),
        ("time", pa.timestamp("us")),
        ("code", pa.string()),
        ("numeric_value", pa.float32()),
    ]
)
LABELS = pa.schema([("subject_id", pa.int64()), ("prediction_time", pa.timestamp("us")), ("boolean_value", pa.bool_())])


def write(path, rows, schema):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(zip(schema.names, row)) for row in rows], schema), path)


@pytest.fixture(scope="session")
def meds(tmp_path_factory):
    """Stays in which one diagnosis makes the label likely. What comes after the prediction would give the label away."""
    folder, draw = tmp_path_factory.mktemp("meds"), random.Random(1)
    data, labels, splits = [], [], []
    for subject in range(-SUBJECTS // 2, SUBJECTS // 2):
        split = draw.choices(["train", "tuning", "held_out"], [8, 1, 1])[0]
        splits.append((subject, split))
        data.append((subject, None, f"GENDER//{draw.choice('FM')}", None))
        admission = datetime(2020, 1, 1) + timedelta(days=draw.randrange(365))
        prediction = admission + timedelta(hours=24)
        is_bad = draw.random() < 0.4
        truth = draw.random() < (0.8 if is_bad else 0.2)
        diagnoses = draw.sample(range(10), 2) + [10] * is_bad
        data.append((subject, admission, "HOSPITAL_ADMISSION//EMERGENCY", None))
        data += [(subject, prediction, f"DIAGNOSIS//ICD//10//D{code}", None) for code in diagnoses]
        data.append((subject, prediction, f"MEDICATION//START//M{draw.randrange(5)}", None))
        data.append((subject, prediction, "LAB//1//mg", draw.gauss(5, 1)))
        late = prediction + timedelta(hours=1)
        data.append((subject, late, "DIAGNOSIS//ICD//10//LATE" if truth else "DIAGNOSIS//ICD//10//D1", None))
        data.append((subject, prediction + timedelta(days=3), "HOSPITAL_DISCHARGE//HOME", None))
        labels.append((subject, prediction, truth))
    for shard in ["train", "tuning", "held_out"]:
        here = {subject for subject, split in splits if split == shard}
        write(folder / f"data/{shard}/0.parquet", [row for row in data if row[0] in here], DATA)
    write(folder / "metadata/subject_splits.parquet", splits, pa.schema([("subject_id", pa.int64()), ("split", pa.string())]))
    write(folder / "labels/bad/0.parquet", labels, LABELS)
    return folder


def test_the_tool_of_the_standard_finds_our_figures(meds, gct, tmp_path):
    counts = gct("prepare", "meds", meds, "--out", tmp_path / "data")
    assert counts["encounters_kept"] == counts["labels_known"]["boolean_value"] == SUBJECTS
    assert counts["events_dropped"]["after_prediction"] == SUBJECTS
    run, predictions, scores = tmp_path / "run", tmp_path / "predictions.parquet", tmp_path / "scores.json"
    small = ["--steps", 100, "--set", "model.width=16", "--set", "learning_rate=0.01", "--quiet"]
    gct("train", "--data", tmp_path / "data", "--task", "label:boolean_value", "--model", "shallow", "--out", run, *small)
    gct("predict", run, "--meds", "--out", predictions)

    table = pandas.read_parquet(predictions)
    labels = pandas.read_parquet(meds / "labels/bad/0.parquet")
    splits = pandas.read_parquet(meds / "metadata/subject_splits.parquet")
    assert sorted(table.subject_id) == sorted(splits.subject_id[splits.split == "held_out"])
    key = ["subject_id", "prediction_time", "boolean_value"]
    assert len(table[key].merge(labels)) == len(table)

    command = [Path(sys.executable).with_name("meds-evaluation-cli"), f"predictions_path={predictions}", f"output_file={scores}"]
    subprocess.run(command, check=True, cwd=tmp_path)
    theirs = json.loads(scores.read_text())["samples_equally_weighted"]
    ours = gct("evaluate", run, "--bootstrap", 0)
    print(f"AUROC: {theirs['roc_auc_score']} and {ours['auroc']} of {ours['encounters']}")
    assert ours["encounters"] == len(table)
    # Their probabilities have 32 bits, which could make two of ours equal.
    assert ours["auroc"] == pytest.approx(theirs["roc_auc_score"], abs=1e-6)
    assert ours["aucpr"] == pytest.approx(theirs["average_precision_score"], abs=1e-6)
    assert ours["accuracy"] == pytest.approx(theirs["binary_accuracy"])
    at_half = next(point for point in ours["thresholds"] if point["threshold"] == 0.5)
    assert at_half["f1"] == pytest.approx(theirs["f1_score"])
    assert 0.65 < ours["auroc"] < 0.95
