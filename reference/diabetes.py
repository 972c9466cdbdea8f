"""Readmission of the UCI diabetes encounters: logistic regression and LightGBM beside our models.

    python reference/diabetes.py baselines diabetes --out with.json --csv diabetic_data.csv
    python reference/diabetes.py baselines diabetes-codes --out codes.json
    python reference/diabetes.py table --codes results/codes codes.json --context results/context with.json

`baselines` reads a dataset that gct prepared: the same encounters, codes and splits as those of our models. Settings
are chosen by AUCPR on the validation split of seed 0, out of as many tries for each method as `--tries` says, and stay
the same on all splits; LightGBM stops adding trees when validation does not improve. `--csv` adds LightGBM on the
columns of the published file, numbers as numbers and words as categories. `--predictions DIR` keeps the scores of the
test splits. `table` prints a table in Markdown from the trials of `gct experiment` and from baselines. The test split
is used for nothing but the final metrics.
"""

import argparse
import hashlib
import json
import math
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from scipy.sparse import csr_matrix
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score

SEEDS = range(5)
KINDS = ("diagnosis", "treatment", "lab", "context")
LABEL = "readmission"
MISSING = "?"

# Columns of the published file that are no input: identifiers, and what is to be predicted.
NO_INPUT = ("encounter_id", "patient_nbr", "readmitted")

# Encounters to test on, per encounter to learn from: the correction of Nadeau and Bengio (2003).
TEST_SHARE = 1 / 8


def part(subject, seed):
    """The part of the split that a subject is in, as docs/data.md has it."""
    digest = hashlib.sha256(f"gct-split-1\0{seed}\0{subject}".encode()).digest()
    u = int.from_bytes(digest[:8], "big") / 2**64
    return "train" if u < 0.8 else "validation" if u < 0.9 else "test"


class Data:
    """Encounters with a known label: their identifiers, subjects, labels, and inputs as a matrix."""

    def __init__(self, folder):
        folder = Path(folder)
        file = folder / "encounters.parquet"
        rows = pq.read_table(file if file.exists() else folder / "encounters")
        wanted = ["encounter_id", "subject_id", LABEL, *(kind for kind in KINDS if kind in rows.column_names)]
        # Texts can be stored as views, which Arrow cannot filter yet.
        texts = {name: rows[name].cast(pa.string()) for name in wanted[:2]}
        rows = pa.table(texts | {name: rows[name] for name in wanted[2:]})
        rows = rows.filter(rows[LABEL].is_valid())
        self.encounters = rows["encounter_id"].to_pylist()
        self.subjects = rows["subject_id"].to_pylist()
        self.labels = rows[LABEL].to_numpy(zero_copy_only=False).astype(bool)
        self.matrix = one_hot(rows, pq.read_table(folder / "vocabulary.parquet"))

    def parts(self, seed):
        """Rows of each part of a split, by name."""
        parts = np.array([part(subject, seed) for subject in self.subjects])
        return {name: np.flatnonzero(parts == name) for name in ("train", "validation", "test")}


def one_hot(rows, vocabulary):
    """A column per code, of all kinds."""
    sizes = {kind: vocabulary["kind"].to_pylist().count(kind) for kind in KINDS}
    at, columns, ends = 0, [[] for _ in range(len(rows))], [0]
    for kind in KINDS:
        for codes, ids in zip(columns, rows[kind].to_pylist() if kind in rows.column_names else []):
            codes.extend(at + code for code in ids)
        at += sizes[kind]
    for codes in columns:
        ends.append(ends[-1] + len(codes))
    flat = np.array([code for codes in columns for code in codes], dtype=np.int32)
    return csr_matrix((np.ones(len(flat), dtype=np.float32), flat, ends), shape=(len(rows), at))


def raw_columns(path, encounters):
    """The published columns of these encounters, and which of them are categories."""
    options = pyarrow.csv.ConvertOptions(
        null_values=[MISSING], strings_can_be_null=True, column_types={"encounter_id": pa.string()}
    )
    table = pyarrow.csv.read_csv(path, convert_options=options)
    place = {encounter: row for row, encounter in enumerate(table["encounter_id"].to_pylist())}
    table = table.take([place[encounter] for encounter in encounters])
    names, columns, categories = [], [], []
    for name in table.column_names:
        if name in NO_INPUT:
            continue
        column = table[name].combine_chunks()
        # Kinds of admission and discharge, and some diagnoses, are written as numbers and are none.
        is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
        if name.endswith("_id") or name.startswith("diag_") or not is_number:
            categories.append(name)
            column = column.cast(pa.string()).dictionary_encode().indices
        names.append(name)
        columns.append(column.to_numpy(zero_copy_only=False).astype(np.float64))
    return np.column_stack(columns), names, categories


class Logistic:
    """Logistic regression on codes, with the weight C of the data against the L2 penalty."""

    def __init__(self, data):
        self.matrix = data.matrix

    def tries(self, count):
        return [{"C": float(c)} for c in np.geomspace(1e-3, 10, count)]

    def fit(self, settings, labels, parts):
        train = parts["train"]
        model = LogisticRegression(C=settings["C"], max_iter=2000).fit(self.matrix[train], labels[train])
        return lambda rows: model.decision_function(self.matrix[rows]), {}


class Trees:
    """LightGBM on a matrix, with settings that are drawn at random; its own defaults are the first try."""

    def __init__(self, matrix, names="auto", categories="auto"):
        self.matrix, self.names, self.categories = matrix, names, categories

    def tries(self, count):
        random = np.random.default_rng(0)

        def between(low, high):
            return float(np.exp(random.uniform(np.log(low), np.log(high))))

        drawn = [{}]
        while len(drawn) < count:
            drawn.append(
                {
                    "learning_rate": between(0.02, 0.2),
                    "num_leaves": round(between(4, 64)),
                    "min_data_in_leaf": round(between(3, 100)),
                    "lambda_l2": between(1e-3, 10),
                    "feature_fraction": random.uniform(0.2, 1.0),
                    "bagging_fraction": random.uniform(0.5, 1.0),
                    "bagging_freq": 1,
                    "cat_smooth": between(1, 100),
                }
            )
        return drawn[:count]

    def fit(self, settings, labels, parts):
        def dataset(rows, reference=None):
            return lightgbm.Dataset(
                self.matrix[rows],
                labels[rows].astype(int),
                reference=reference,
                feature_name=self.names,
                categorical_feature=self.categories,
                params={"verbose": -1},
            )

        train = dataset(parts["train"])
        fixed = {"objective": "binary", "metric": "average_precision", "verbose": -1, "seed": 0, "deterministic": True}
        model = lightgbm.train(
            fixed | settings,
            train,
            num_boost_round=1500,
            valid_sets=[dataset(parts["validation"], train)],
            callbacks=[lightgbm.early_stopping(50, verbose=False)],
        )
        found = {"trees": model.best_iteration}
        return lambda rows: model.predict(self.matrix[rows], num_iteration=model.best_iteration), found


def metrics(labels, scores):
    return {
        "aucpr": float(average_precision_score(labels, scores)),
        "auroc": float(roc_auc_score(labels, scores)),
    }


def measure(method, settings, data, seed, keep=None):
    """Fits on a split and measures on validation and, with `keep`, which gets rows and scores, on test."""
    parts = data.parts(seed)
    predict, found = method.fit(settings, data.labels, parts)
    found["validation"] = metrics(data.labels[parts["validation"]], predict(parts["validation"]))
    if keep:
        scores = predict(parts["test"])
        found["test"] = {"encounters": len(scores)} | metrics(data.labels[parts["test"]], scores)
        keep(parts["test"], scores)
    return found


def run(name, method, data, tries, folder):
    """Chooses settings on validation, then measures them on every split."""
    tried = []
    for settings in method.tries(tries):
        value = measure(method, settings, data, SEEDS[0])["validation"]["aucpr"]
        tried.append({"settings": settings, "aucpr": value})
        print(f"{name}: try {len(tried)} of {tries}, validation AUCPR {value:.4f}", file=sys.stderr)
    chosen = max(tried, key=lambda one: one["aucpr"])["settings"]
    splits = {}
    for seed in SEEDS:

        def keep(rows, scores):
            if folder:
                write_predictions(Path(folder) / f"{name}-{seed}.parquet", data, rows, scores)

        splits[seed] = measure(method, chosen, data, seed, keep)
        print(f"{name}: split {seed} of {len(SEEDS)}", file=sys.stderr)
    return {"settings": chosen, "tries": tried, "splits": splits}


def write_predictions(path, data, rows, scores):
    """Scores beside the truth, with the columns of `gct predict`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {
        "subject_id": [data.subjects[row] for row in rows],
        "encounter_id": [data.encounters[row] for row in rows],
        "boolean_value": data.labels[rows],
        "score": scores.astype(np.float64),
    }
    pq.write_table(pa.table(columns), path)


def baselines(arguments):
    data = Data(arguments.dataset)
    methods = {"logistic_regression": Logistic(data), "lightgbm": Trees(data.matrix)}
    if arguments.csv:
        methods["lightgbm_raw"] = Trees(*raw_columns(arguments.csv, data.encounters))
    found = {name: run(name, method, data, arguments.tries, arguments.predictions) for name, method in methods.items()}
    Path(arguments.out).write_text(json.dumps(found, indent=2) + "\n")


TITLES = {
    "logistic_regression": "logistic regression",
    "lightgbm": "LightGBM",
    "lightgbm_raw": "LightGBM, raw columns",
}


def trials(folder):
    """Metrics on the test split of every finished trial: model, seed, metrics."""
    found = {}
    for path in sorted(Path(folder).glob("trials/*.json")):
        trial = json.loads(path.read_text())
        if trial["settings"]["task"] == LABEL and "test" in trial:
            test = {"encounters": trial["test"]["encounters"]} | trial["test"]["figures"]
            found.setdefault(trial["model"], {})[trial["settings"]["split"]["seed"]] = test
    return found


def results(folder, file):
    """Metrics of our models and of baselines on the same test splits."""
    found = trials(folder)
    for name, method in json.loads(Path(file).read_text()).items():
        found[TITLES.get(name, name)] = {int(seed): split["test"] for seed, split in method["splits"].items()}
    for seed in SEEDS:
        sizes = {splits[seed]["encounters"] for splits in found.values() if seed in splits}
        if len(sizes) > 1:
            sys.exit(f"{folder} and {file} are of different data: test splits of seed {seed} have {sorted(sizes)} rows")
    return found


def half_width(values):
    """Half of the 95 % interval of a mean over splits that share most of their training encounters."""
    return student.ppf(0.975, len(values) - 1) * standard_error(values)


def standard_error(values):
    return float(np.std(values, ddof=1)) * math.sqrt(1 / len(values) + TEST_SHARE)


def p_value(differences):
    """The corrected resampled t-test of Nadeau and Bengio, two-sided."""
    error = standard_error(differences)
    if error == 0:
        return 1.0
    return float(2 * student.sf(abs(np.mean(differences)) / error, len(differences) - 1))


def cells(splits, reference, metric):
    """Mean with interval, and difference from the reference with p."""
    seeds = sorted(set(splits) & set(reference))
    values = [splits[seed][metric] for seed in seeds]
    if len(values) < 2:
        return [f"{np.mean(values):.4f}" if values else "-", "-"]
    mean = f"{np.mean(values):.4f} ± {half_width(values):.4f}"
    differences = [splits[seed][metric] - reference[seed][metric] for seed in seeds]
    if splits is reference:
        return [mean, "-"]
    return [mean, f"{np.mean(differences):+.4f} (p {p_in_words(p_value(differences))})"]


def p_in_words(p):
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def markdown(found, reference="gct"):
    """A row per model, the best AUCPR first."""
    if reference not in found:
        sys.exit(f"there is no trial of {reference} to compare with")
    # Only splits that the reference has: means over other ones could not be compared.
    shared = {name: {seed: splits[seed] for seed in splits if seed in found[reference]} for name, splits in found.items()}
    found = {name: splits for name, splits in shared.items() if splits}
    lines = [
        f"| model | AUCPR | beside {reference} | AUROC | beside {reference} | splits |",
        "|---|---|---|---|---|---|",
    ]
    order = sorted(found, key=lambda name: -np.mean([split["aucpr"] for split in found[name].values()]))
    for name in order:
        both = [cells(found[name], found[reference], metric) for metric in ("aucpr", "auroc")]
        lines.append(f"| {' | '.join([name, *both[0], *both[1], str(len(found[name]))])} |")
    return "\n".join(lines)


def table(arguments):
    for title, given in [("Codes alone", arguments.codes), ("Codes and context", arguments.context)]:
        if given:
            print(f"### {title}\n\n{markdown(results(*given))}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("baselines", help="fit and measure logistic regression and LightGBM")
    command.add_argument("dataset")
    command.add_argument("--out", required=True, help="the JSON file to write")
    command.add_argument("--csv", help="the published file, for LightGBM on its columns")
    command.add_argument("--tries", type=int, default=20, help="settings that are tried on validation [20]")
    command.add_argument("--predictions", help="a folder for scores of the test splits")
    command.set_defaults(run=baselines)
    command = commands.add_parser("table", help="print the table in Markdown")
    for name in ("codes", "context"):
        command.add_argument(f"--{name}", nargs=2, metavar=("RESULTS", "BASELINES"))
    command.set_defaults(run=table)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
