"""The recipe of docs/examples/diabetes.md on a small file of our own making, and what its table is made of."""

import csv
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tomllib

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import ttest_1samp

import diabetes
from conftest import ROOT

RECIPE = ROOT / "docs" / "examples" / "diabetes.md"
ROWS = 900

# What makes the commands short. The commands themselves are those of the document.
SHORT = {
    "experiment": "--set steps=20 --set warmup=0 --set validate_every=10 --set model.width=8 --set batch=16",
    "baselines": "--tries 2",
}


def columns():
    """The columns of the published file, as the source names them."""
    source = tomllib.loads((ROOT / "examples" / "diabetes" / "source.toml").read_text())
    names = list(source["tables"]["diabetic_data"]["columns"])
    assert len(names) == 50
    return names


def small_file(path):
    """Encounters at random, of which those with many earlier visits are followed by others more often."""
    draw, names = random.Random(3), columns()
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for number in range(ROWS):
            earlier = draw.randrange(4)
            row = dict.fromkeys(names, "No") | {
                "encounter_id": 1000 + number,
                "patient_nbr": draw.randrange(ROWS // 2),
                "race": draw.choice(["Caucasian", "Asian", "?"]),
                "gender": draw.choice(["Female", "Male"]),
                "age": draw.choice(["[60-70)", "[70-80)"]),
                "weight": "?",
                "admission_type_id": draw.choice([1, 3]),
                "discharge_disposition_id": draw.choice([1, 1, 1, 6, 11]),
                "admission_source_id": 7,
                "time_in_hospital": draw.randrange(1, 15),
                "payer_code": "?",
                "medical_specialty": "?",
                "num_lab_procedures": draw.randrange(1, 90),
                "num_procedures": draw.randrange(7),
                "num_medications": draw.randrange(1, 50),
                "number_outpatient": draw.randrange(3),
                "number_emergency": 0,
                "number_inpatient": earlier,
                "diag_1": draw.choice(["428", "250.6"]),
                "diag_2": draw.choice(["401", "?"]),
                "diag_3": draw.choice(["V45", "E885"]),
                "number_diagnoses": 9,
                "max_glu_serum": draw.choice(["None", ">200"]),
                "a1cresult": draw.choice(["None", ">8"]),
                "insulin": draw.choice(["No", "Steady", "Up"]),
                "readmitted": "<30" if draw.random() < 0.1 + 0.2 * earlier else draw.choice(["NO", ">30"]),
            }
            writer.writerow(row)


def commands():
    """The commands of the recipe, with its lines that go on joined."""
    blocks = re.findall(r"^```sh\n(.*?)^```", RECIPE.read_text(), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith(("gct ", "python "))]


@pytest.fixture(scope="session")
def recipe(tmp_path_factory):
    """A folder after all commands of the recipe, and what the last one printed."""
    home = tmp_path_factory.mktemp("diabetes")
    small_file(home / "diabetic_data.csv")
    for name in ("examples", "experiments", "reference"):
        (home / name).symlink_to(ROOT / name)
    programs = {"gct": os.environ["GCT"], "python": sys.executable}
    for line in commands():
        words = shlex.split(line, comments=True)
        extra = next((more for name, more in SHORT.items() if name in words[:3]), "")
        command = [programs[words[0]], *words[1:], *extra.split()]
        printed = subprocess.run(command, cwd=home, check=True, stdout=subprocess.PIPE, text=True).stdout
    return home, printed


def test_the_recipe_leads_to_a_table(recipe):
    home, printed = recipe
    sections = printed.split("### ")[1:]
    assert [section.splitlines()[0] for section in sections] == ["Codes alone", "Codes and context"]
    ours = {"gct", "transformer", "gcn_p", "gcn_random", "shallow", "deep"}
    peers = {"logistic regression", "LightGBM"}
    for section, raw in zip(sections, [set(), {"LightGBM, raw columns"}]):
        rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
        assert {row[0] for row in rows} == ours | peers | raw
        assert all(row[-1] == "5" for row in rows), "five splits of each"


def test_baselines_are_measured_on_the_encounters_of_our_test_splits(recipe, gct):
    home, _ = recipe
    data = diabetes.Data(home / "diabetes")
    for seed in diabetes.SEEDS:
        split = home / f"split-{seed}.parquet"
        gct("split", home / "diabetes", "--split-seed", seed, "--out", split)
        ours = {row["encounter_id"]: row["part"] for row in pq.read_table(split).to_pylist()}
        parts = data.parts(seed)
        theirs = {data.encounters[row]: name for name, rows in parts.items() for row in rows}
        assert theirs == ours
        trial = json.loads((home / f"results/context/trials/readmission-gct-{seed}.json").read_text())
        assert trial["test"]["encounters"] == len(parts["test"])


def test_the_matrix_has_every_code_and_no_other(recipe):
    home, _ = recipe
    data = diabetes.Data(home / "diabetes")
    vocabulary = pq.read_table(home / "diabetes" / "vocabulary.parquet").to_pylist()
    counts = [row["count"] for kind in diabetes.KINDS for row in vocabulary if row["kind"] == kind]
    np.testing.assert_array_equal(np.asarray(data.matrix.sum(axis=0)).ravel(), counts)


def test_raw_columns_know_numbers_from_categories(recipe):
    home, _ = recipe
    data = diabetes.Data(home / "diabetes")
    matrix, names, categories = diabetes.raw_columns(home / "diabetic_data.csv", data.encounters)
    assert matrix.shape == (len(data.encounters), 47)
    assert "time_in_hospital" not in categories and {"age", "admission_type_id", "diag_1"} <= set(categories)
    assert not set(names) & set(diabetes.NO_INPUT)
    rows = {row["encounter_id"]: row for row in csv.DictReader((home / "diabetic_data.csv").open())}
    column = names.index("number_inpatient")
    expected = [int(rows[encounter]["number_inpatient"]) for encounter in data.encounters]
    np.testing.assert_array_equal(matrix[:, column], expected)


def test_intervals_and_p_are_those_of_a_t_test_with_more_variance():
    values = [0.1, 0.3, 0.2, 0.15, 0.4]
    plain = ttest_1samp(values, 0)
    low, high = plain.confidence_interval(0.95)
    wider = np.sqrt((1 / 5 + 1 / 8) / (1 / 5))
    assert diabetes.half_width(values) == pytest.approx((high - low) / 2 * wider)
    scaled = np.array(values) - np.mean(values) + np.mean(values) / wider
    assert diabetes.p_value(values) == pytest.approx(ttest_1samp(scaled, 0).pvalue)


def test_results_of_other_data_are_refused(tmp_path):
    trial = {"model": "gct", "settings": {"task": "readmission", "split": {"seed": 0}}}
    (tmp_path / "trials").mkdir()
    test = {"encounters": 10, "figures": {"aucpr": 0.5, "auroc": 0.5}}
    (tmp_path / "trials" / "one.json").write_text(json.dumps(trial | {"test": test}))
    other = {"lightgbm": {"splits": {"0": {"test": {"encounters": 11, "aucpr": 0.5, "auroc": 0.5}}}}}
    (tmp_path / "baselines.json").write_text(json.dumps(other))
    with pytest.raises(SystemExit, match="different data"):
        diabetes.results(tmp_path, tmp_path / "baselines.json")
