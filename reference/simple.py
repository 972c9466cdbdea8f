"""What simple methods reach on the tasks: figures of docs/results.md that stand beside those of the models.

    python reference/simple.py edges synthetic           how well counts rank the true edges of held-out encounters
    python reference/simple.py masked synthetic          how often naive Bayes guesses a hidden diagnosis
    python reference/simple.py label eicu mortality      a logistic regression on codes, in five folds by subject
    python reference/simple.py areas FILE.parquet        areas of what `gct predict` wrote, exactly and as the paper's authors measure them

Held out is the validation split. Each prints one JSON object.
"""

import argparse
import json
import warnings

import numpy as np
import pyarrow.parquet as pq
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import GroupKFold

from prior_duckdb import part

KINDS = ("diagnosis", "treatment", "lab")


def read(folder):
    rows = pq.read_table(f"{folder}/encounters").to_pylist()
    sizes = {kind: 1 + max((max(row[kind], default=0) for row in rows), default=0) for kind in KINDS}
    parts = {name: [row for row in rows if part(row["subject_id"]) == name] for name in ("train", "validation")}
    return rows, sizes, parts


def present(rows, kind, sizes):
    """A row per encounter, with ones where its codes are."""
    matrix = np.zeros((len(rows), sizes[kind]), dtype=np.float32)
    for number, row in enumerate(rows):
        matrix[number, row[kind]] = 1
    return matrix


class Pairs:
    """Every cause beside every effect of an encounter: one number per pair of codes, per effect, and whether it is an edge."""

    def __init__(self, rows, cause, effect, columns):
        codes, effects, edges, count = [], [], [], 0
        for row in rows:
            causes, found = np.array(row[cause], dtype=np.int64), np.array(row[effect], dtype=np.int64)
            codes.append((causes[:, None] * columns + found).ravel())
            effects.append(np.tile(np.arange(count, count + len(found)), len(causes)))
            true = {edge[cause] * columns + edge[effect] for edge in row[f"{cause}_{effect}"]}
            edges.append(np.fromiter((code in true for code in codes[-1].tolist()), dtype=bool, count=len(codes[-1])))
            count += len(found)
        self.codes, self.effects, self.edges = map(np.concatenate, (codes, effects, edges))

    def sum_over_causes(self, values):
        return np.bincount(self.effects, values)[self.effects]

    def noisy_or(self, strengths):
        """The chance that a cause led to its effect, if each leads to it by itself with its strength."""
        none = np.exp(self.sum_over_causes(np.log1p(-strengths[self.codes])))
        return strengths[self.codes] / np.maximum(1 - none, 1e-12)

    def aligned(self, strengths):
        """The chance that a cause led to its effect, if exactly one of them did: IBM model 1."""
        return strengths[self.codes] / np.maximum(self.sum_over_causes(strengths[self.codes]), 1e-12)


def edges(folder):
    _, sizes, parts = read(folder)
    found = {}
    for cause, effect in (("diagnosis", "treatment"), ("treatment", "lab")):
        cells, columns = sizes[cause] * sizes[effect], sizes[effect]
        train, held_out = (Pairs(parts[name], cause, effect, columns) for name in ("train", "validation"))
        causes = np.bincount([code for row in parts["train"] for code in row[cause]], minlength=sizes[cause])
        causes = np.maximum(np.repeat(causes, columns), 1)
        together = np.bincount(train.codes, minlength=cells)
        score = lambda chances: round(float(average_precision_score(held_out.edges, chances)), 4)
        ranked = found[f"{cause}_{effect}"] = {
            "conditional probabilities": score((together / causes)[held_out.codes]),
            "true edges of the training split": score(
                (np.bincount(train.codes, train.edges, minlength=cells) / np.maximum(together, 1))[held_out.codes]
            ),
        }
        strengths = np.minimum(together / causes, 0.999)
        for round_ in range(1, 21):
            strengths = np.bincount(train.codes, train.noisy_or(strengths), minlength=cells) / causes
            strengths = np.minimum(strengths, 0.999)
            if round_ in (1, 2, 5, 20):
                ranked[f"noisy-or, round {round_}"] = score(held_out.noisy_or(strengths))
        strengths = together / causes
        for round_ in (1, 2):
            expected = np.bincount(train.codes, train.aligned(strengths), minlength=cells)
            totals = expected.reshape(-1, columns).sum(1)
            strengths = expected / np.maximum(np.repeat(totals, columns), 1e-12)
            ranked[f"IBM model 1, round {round_}"] = score(held_out.aligned(strengths))
    return found


def masked(folder, weight=100.0, trust=0.5):
    """Probabilities of a code given a diagnosis are drawn towards those of the code by `weight` encounters. Codes of an encounter are not
    independent, so what they say counts half: both numbers are the best of a few."""
    _, sizes, parts = read(folder)
    diagnoses, treatments = (present(parts["train"], kind, sizes) for kind in ("diagnosis", "treatment"))
    counts = diagnoses.sum(0)

    def ratios(codes):
        """The logarithm of p(code | diagnosis) / p(code)."""
        share = codes.mean(0) + 1e-9
        return np.log((diagnoses.T @ codes + weight * share) / (counts[:, None] + weight) / share)

    treatment_ratios, beside = ratios(treatments), ratios(diagnoses)
    edge_counts = np.zeros((sizes["diagnosis"], sizes["treatment"]))
    for row in parts["train"]:
        for edge in row["diagnosis_treatment"]:
            edge_counts[edge["diagnosis"], edge["treatment"]] += 1
    share = edge_counts.sum(0) / edge_counts.sum() + 1e-9
    ordered = np.log((edge_counts + weight * share) / (edge_counts.sum(1, keepdims=True) + weight) / share)

    rng = np.random.default_rng(0)
    right = {"frequency": 0, "treatments and diagnoses": 0, "its own treatments known": 0}
    rows = [row for row in parts["validation"] if row["diagnosis"]]
    for row in rows:
        hidden = rng.choice(row["diagnosis"])
        visible = [code for code in row["diagnosis"] if code != hidden]
        own = [edge["treatment"] for edge in row["diagnosis_treatment"] if edge["diagnosis"] == hidden]
        frequency = np.log(counts + 1e-9)
        frequency[visible] = -np.inf
        from_diagnoses = frequency + trust * beside[:, visible].sum(1)
        guesses = {
            "frequency": frequency,
            "treatments and diagnoses": from_diagnoses + trust * treatment_ratios[:, row["treatment"]].sum(1),
            "its own treatments known": from_diagnoses + ordered[:, own].sum(1),
        }
        for name, guess in guesses.items():
            right[name] += int(guess.argmax() == hidden)
    return {name: round(count / len(rows), 4) for name, count in right.items()} | {"encounters": len(rows)}


def label(folder, name):
    rows, sizes, _ = read(folder)
    if name not in rows[0]:
        raise SystemExit(f"error: {folder} has no label `{name}`; `gct inspect {folder}` lists them")
    rows = [row for row in rows if row[name] is not None]
    codes = np.hstack([present(rows, kind, sizes) for kind in KINDS])
    truth = np.array([row[name] for row in rows])
    areas = []
    for train, test in GroupKFold(5, shuffle=True, random_state=0).split(codes, groups=[r["subject_id"] for r in rows]):
        model = LogisticRegression(C=0.1, max_iter=200).fit(codes[train], truth[train])
        areas.append(average_precision_score(truth[test], model.predict_proba(codes[test])[:, 1]))
    mean, deviation = float(np.mean(areas)), float(np.std(areas, ddof=1))
    return {"aucpr": round(mean, 4), "standard deviation": round(deviation, 4), "encounters": len(rows)}


def interpolated(truth, probabilities, thresholds=200):
    """AUCPR and AUROC as `tf.metrics.auc` with `careful_interpolation` has them: counts at evenly spaced thresholds, between which the
    number of true positives grows evenly with that of all positives (Davis and Goadrich, 2006)."""
    limits = np.linspace(0, 1, thresholds)
    limits[[0, -1]] = -1e-7, 1 + 1e-7
    place = np.searchsorted(limits.astype(np.float32), probabilities.astype(np.float32))

    def above(weights):
        return np.bincount(place, weights, minlength=thresholds + 1)[:0:-1].cumsum()[::-1]

    true, false = above(truth), above(~truth)
    found = true + false
    true_steps, steps = -np.diff(true), -np.diff(found)
    roc = (-np.diff(false) * (true[:-1] + true[1:]) / 2).sum() / (true[0] * false[0])
    slope = np.divide(true_steps, steps, out=np.zeros_like(steps), where=steps > 0)
    growth = np.divide(found[:-1], found[1:], out=np.ones_like(steps), where=found[1:] > 0)
    return float((slope * (true_steps + (true[1:] - slope * found[1:]) * np.log(growth))).sum() / true[0]), float(roc)


def areas(path):
    table = pq.read_table(path)
    name = "probability" if "probability" in table.column_names else "predicted_boolean_probability"
    table = table.filter(table["boolean_value"].is_valid())
    truth, probabilities = (table[column].to_numpy() for column in ("boolean_value", name))
    exact = average_precision_score(truth, probabilities), roc_auc_score(truth, probabilities)
    methods = {"exact": exact, "200 thresholds": interpolated(truth, probabilities)}
    return {method: {"aucpr": round(pr, 4), "auroc": round(roc, 4)} for method, (pr, roc) in methods.items()} | {
        "answers": len(truth)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["edges", "masked", "label", "areas"])
    parser.add_argument("folder", metavar="folder or file")
    parser.add_argument("label", nargs="?")
    args = parser.parse_args()
    if (args.what == "label") != (args.label is not None):
        parser.error("the name of a label goes with `label`, and with nothing else")
    warnings.simplefilter("ignore", ConvergenceWarning)
    found = {"edges": edges, "masked": masked, "label": label, "areas": areas}[args.what](args.folder, *filter(None, [args.label]))
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
