"""Our figures beside those of scikit-learn. GCT_METRICS is the example `metrics` of the package gct."""

import json
import os
import subprocess

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.stats import binomtest
from sklearn.calibration import _SigmoidCalibration, calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    f1_score,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

BINS = 10


def printed(tmp_path, scores, labels, subjects, replicates=20, seed=0, thresholds=(), other=None):
    assert scores.dtype == np.float32
    file = tmp_path / "examples.json"
    file.write_text(
        json.dumps(
            {
                "scores": scores.tolist(),
                "labels": labels.tolist(),
                "subjects": subjects.tolist(),
                "bootstrap": {"replicates": replicates, "seed": seed},
                "thresholds": list(thresholds),
                "other": None if other is None else other.tolist(),
            }
        )
    )
    run = subprocess.run([os.environ["GCT_METRICS"], file], check=True, stdout=subprocess.PIPE)
    return json.loads(run.stdout)


def figures(*args, **kwargs):
    got = printed(*args, **kwargs)
    return got["areas"] | got["predictions"]


def examples(seed, count, subjects, levels):
    """Logits of which many are equal, so that ties are the rule."""
    random = np.random.default_rng(seed)
    labels = random.random(count) < 0.3
    who = random.integers(0, subjects, count)
    logits = 1.5 * random.normal(size=count) + labels + random.normal(size=subjects)[who]
    scores = (np.round(np.clip(logits, -6, 6) * levels) / levels).astype(np.float32)
    assert len(np.unique(scores)) < count
    return scores, labels, who


def calibration_error(probabilities, labels):
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    inside = [bins == bin for bin in range(BINS)]
    return sum(
        abs(probabilities[of].mean() - labels[of].mean()) * of.mean() for of in inside if of.any()
    )


def expected(scores, labels, weights=None):
    logits = scores.astype(np.float64)
    probabilities = 1 / (1 + np.exp(-logits))
    return {
        "aucpr": average_precision_score(labels, logits, sample_weight=weights),
        "auroc": roc_auc_score(labels, logits, sample_weight=weights),
        "accuracy": accuracy_score(labels, logits > 0, sample_weight=weights),
        "log_loss": log_loss(labels, probabilities, sample_weight=weights),
        "brier_score": brier_score_loss(labels, probabilities, sample_weight=weights),
    }


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("levels", [1, 4, 20])
@pytest.mark.parametrize("count", [30, 1000])
def test_values_are_those_of_scikit_learn(tmp_path, seed, levels, count):
    scores, labels, subjects = examples(seed, count, 10, levels)
    got = figures(tmp_path, scores, labels, subjects)
    probabilities = 1 / (1 + np.exp(-scores.astype(np.float64)))
    theirs = expected(scores, labels) | {"calibration_error": calibration_error(probabilities, labels)}
    assert got.keys() == theirs.keys()
    for name, value in theirs.items():
        assert got[name]["value"] == pytest.approx(value, rel=0, abs=1e-9), name


def test_intervals_are_those_of_resampled_subjects(tmp_path):
    scores, labels, who = examples(1, 600, 40, 4)
    # Subjects that differ in size, so that it matters who is drawn.
    subjects = np.minimum(who, 29)
    got = figures(tmp_path, scores, labels, subjects, replicates=4000)
    random = np.random.default_rng(0)
    replicates = [
        expected(scores, labels, np.bincount(random.integers(0, 30, 30), minlength=30)[subjects])
        for _ in range(400)
    ]
    for name in replicates[0]:
        low, high = np.percentile([of[name] for of in replicates], [2.5, 97.5])
        # The ends of 400 replicates vary by about 3 % of the width.
        assert got[name]["interval"] == pytest.approx([low, high], rel=0, abs=0.12 * (high - low)), name
    assert 0 < got["calibration_error"]["interval"][0] < got["calibration_error"]["interval"][1] < 1


def test_log_loss_of_large_logits_is_exact(tmp_path):
    scores = np.array([-80, 800, -700, 700, 30, -30], np.float32)
    labels = np.array([True, False, False, True, True, True])
    got = figures(tmp_path, scores, labels, np.arange(6))
    exact = np.logaddexp(0, np.where(labels, -1, 1) * scores.astype(np.float64)).mean()
    assert got["log_loss"]["value"] == pytest.approx(exact, rel=1e-14)


def test_undefined_is_null(tmp_path):
    got = figures(tmp_path, np.zeros(2, np.float32), np.array([False, False]), np.array([0, 1]))
    assert got["aucpr"] == got["auroc"] == {"value": None, "interval": None}
    assert got["accuracy"] == {"value": 1.0, "interval": [1.0, 1.0]}


THRESHOLDS = [0.0, 0.05, 0.2, 0.5, 0.73, 1.0]


def points(scores, labels):
    """What scikit-learn says at each threshold; undefined is None."""
    probabilities, of = 1 / (1 + np.exp(-scores.astype(np.float64))), []
    for threshold in THRESHOLDS:
        said = probabilities > threshold
        theirs = {"zero_division": np.nan}
        of.append(
            {
                "sensitivity": recall_score(labels, said, **theirs),
                "specificity": recall_score(labels, said, pos_label=False, **theirs),
                "ppv": precision_score(labels, said, **theirs),
                "npv": precision_score(labels, said, pos_label=False, **theirs),
                "f1": f1_score(labels, said, zero_division=0.0),
                "alerts_per_1000": 1000 * said.mean(),
            }
        )
    return of


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("levels", [1, 20])
def test_operating_points_are_those_of_scikit_learn(tmp_path, seed, levels):
    scores, labels, subjects = examples(seed, 500, 20, levels)
    got = printed(tmp_path, scores, labels, subjects, thresholds=THRESHOLDS)["thresholds"]
    for ours, theirs, threshold in zip(got, points(scores, labels), THRESHOLDS, strict=True):
        assert ours["threshold"] == threshold
        for name, value in theirs.items():
            mine = np.nan if ours[name] is None else ours[name]
            assert mine == pytest.approx(value, rel=0, abs=1e-12, nan_ok=True), (name, threshold)


def test_net_benefit_is_that_of_the_confusion_matrix(tmp_path):
    scores, labels, subjects = examples(3, 400, 20, 4)
    probabilities = 1 / (1 + np.exp(-scores.astype(np.float64)))
    got = printed(tmp_path, scores, labels, subjects, thresholds=THRESHOLDS)["net_benefit"]
    assert [of["threshold"] for of in got] == THRESHOLDS[:-1]
    for of in got:
        odds = of["threshold"] / (1 - of["threshold"])
        for name, said in [("model", probabilities > of["threshold"]), ("treat_all", labels | ~labels)]:
            _, false_alarms, _, found = confusion_matrix(labels, said, labels=[False, True]).ravel()
            assert of[name] == pytest.approx((found - odds * false_alarms) / len(labels), abs=1e-12), name
        assert of["treat_none"] == 0


def recalibration(scores, labels, weights):
    """Slope of a logistic regression on the logit, and the intercept where the slope is 1."""
    z, y = scores.astype(np.float64), labels.astype(np.float64)

    def loss(parameters):
        logit = parameters[0] + parameters[1] * z
        excess = weights * (1 / (1 + np.exp(-logit)) - y)
        return np.sum(weights * (np.logaddexp(0, logit) - y * logit)), [excess.sum(), (excess * z).sum()]

    both = minimize(loss, [0, 1], jac=True, method="BFGS", options={"gtol": 1e-9})
    large = brentq(lambda of: loss([of, 1])[1][0], -50, 50, xtol=1e-12)
    return both.x[1], large


@pytest.mark.parametrize("seed", range(6))
def test_slope_and_intercept_are_those_of_scipy(tmp_path, seed):
    scores, labels, subjects = examples(seed, 800, 30, 8)
    got = printed(tmp_path, scores, labels, subjects)["calibration"]
    slope, intercept = recalibration(scores, labels, np.ones(len(labels)))
    assert got["slope"] == pytest.approx(slope, abs=1e-5)
    assert got["intercept"] == pytest.approx(intercept, abs=1e-9)


def test_intervals_of_points_are_those_of_resampled_subjects(tmp_path):
    scores, labels, who = examples(2, 600, 40, 4)
    subjects = np.minimum(who, 29)
    got = printed(tmp_path, scores, labels, subjects, replicates=4000, thresholds=[0.5])["thresholds"][0]
    random, said = np.random.default_rng(1), scores > 0
    draws = random.multinomial(30, np.full(30, 1 / 30), size=20_000)
    times = lambda cell: draws @ np.bincount(subjects, weights=cell, minlength=30)
    expected = {
        "sensitivity": times(said & labels) / times(labels),
        "specificity": times(~said & ~labels) / times(~labels),
        "ppv": times(said & labels) / times(said),
        "npv": times(~said & ~labels) / times(~said),
        "f1": 2 * times(said & labels) / (times(said) + times(labels)),
        "alerts_per_1000": 1000 * times(said) / times(said | ~said),
    }
    for name, replicates in expected.items():
        low, high = np.percentile(replicates, [2.5, 97.5])
        # The ends of 4,000 replicates vary by about 1 % of the width.
        assert got[f"{name}_interval"] == pytest.approx([low, high], rel=0, abs=0.06 * (high - low)), name


def test_intervals_of_calibration_are_those_of_resampled_subjects(tmp_path):
    scores, labels, who = examples(2, 600, 40, 4)
    subjects = np.minimum(who, 29)
    got = printed(tmp_path, scores, labels, subjects, replicates=4000)["calibration"]
    random = np.random.default_rng(1)
    draws = random.multinomial(30, np.full(30, 1 / 30), size=1000)
    found = np.array([recalibration(scores, labels, times[subjects]) for times in draws])
    for name, replicates in zip(["slope", "intercept"], found.T, strict=True):
        low, high = np.percentile(replicates, [2.5, 97.5])
        # The ends of 1,000 replicates vary by about 2 % of the width.
        assert got[f"{name}_interval"] == pytest.approx([low, high], rel=0, abs=0.1 * (high - low)), name


def test_the_calibration_curve_is_that_of_scikit_learn(tmp_path):
    random = np.random.default_rng(5)
    scores = random.normal(-2, 1.5, 1000).astype(np.float32)
    labels = random.random(1000) < 1 / (1 + np.exp(-scores))
    assert len(np.unique(scores)) == 1000
    probabilities = 1 / (1 + np.exp(-scores.astype(np.float64)))
    bins = printed(tmp_path, scores, labels, np.arange(1000))["calibration"]["bins"]
    happened, said = calibration_curve(labels, probabilities, n_bins=10, strategy="quantile")
    assert [of["count"] for of in bins] == [100] * 10
    assert [of["happened"] for of in bins] == pytest.approx(happened, abs=1e-12)
    assert [of["said"] for of in bins] == pytest.approx(said, abs=1e-12)
    for of in bins:
        theirs = binomtest(round(100 * of["happened"]), 100).proportion_ci(method="wilson")
        assert of["happened_interval"] == pytest.approx([theirs.low, theirs.high], abs=1e-9)


def test_the_slope_of_separated_classes_is_undefined(tmp_path):
    scores, labels = np.array([-2, -1, 1, 2], np.float32), np.array([False, False, True, True])
    got = printed(tmp_path, scores, labels, np.arange(4))["calibration"]
    assert got["slope"] is got["slope_interval"] is None
    assert got["intercept"] == pytest.approx(0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("levels", [1, 20])
@pytest.mark.parametrize("count", [30, 1000])
def test_maps_of_probabilities_are_those_of_scikit_learn(tmp_path, seed, levels, count):
    scores, labels, subjects = examples(seed, count, 10, levels)
    platt, isotonic = printed(tmp_path, scores, labels, subjects)["maps"]
    theirs = _SigmoidCalibration().fit(scores.astype(np.float64), labels)
    if theirs.a_ < 0:
        assert platt["platt"]["slope"] == pytest.approx(-theirs.a_, rel=1e-4)
        assert platt["platt"]["intercept"] == pytest.approx(-theirs.b_, abs=1e-4)
    else:
        assert platt is None, "a map that falls is refused"
    # As if there were one more positive below all others, and one more negative above.
    x = np.concatenate([[scores.min() - 1], scores, [scores.max() + 1]]).astype(np.float64)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(x, np.concatenate([[1], labels, [0]]))
    at = np.linspace(scores.min(), scores.max(), 200)
    if np.ptp(theirs.predict(x)) == 0:
        assert isotonic is None, "a map to one number is refused"
        return
    knots = isotonic["isotonic"]
    ours = np.interp(at, knots["logits"], knots["probabilities"])
    assert ours == pytest.approx(theirs.predict(at), rel=0, abs=1e-6)


def test_differences_are_those_of_the_same_resampled_subjects(tmp_path):
    scores, labels, who = examples(2, 600, 40, 20)
    noise = np.random.default_rng(3).normal(size=600)
    other = (0.7 * scores + 0.3 * noise).astype(np.float32)
    auroc, loss = printed(tmp_path, scores, labels, who, replicates=4000, other=other)["differences"]
    random = np.random.default_rng(0)
    replicates = []
    for _ in range(1000):
        weights = np.bincount(random.integers(0, 40, 40), minlength=40)[who]
        own, theirs = (expected(of, labels, weights) for of in (scores, other))
        replicates.append([theirs[name] - own[name] for name in ("auroc", "log_loss")])
    for ours, drawn in zip((auroc, loss), np.transpose(replicates), strict=True):
        low, high = np.percentile(drawn, [2.5, 97.5])
        assert ours["of"]["interval"] == pytest.approx([low, high], rel=0, abs=0.1 * (high - low))
        sides = min((drawn <= 0).mean(), (drawn >= 0).mean())
        assert ours["p"] == pytest.approx(2 * sides, abs=0.05)
