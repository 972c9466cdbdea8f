"""The simple methods whose figures stand beside those of the models."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import simple


def test_chances_of_one_effect_are_those_of_its_two_causes():
    row = {"diagnosis": [0, 1], "treatment": [0], "diagnosis_treatment": [{"diagnosis": 1, "treatment": 0}]}
    pairs = simple.Pairs([row, row], "diagnosis", "treatment", columns=1)
    assert pairs.codes.tolist() == [0, 1, 0, 1] and pairs.edges.tolist() == [False, True, False, True]
    strengths = np.array([0.5, 0.25])
    assert pairs.noisy_or(strengths) == pytest.approx([0.8, 0.4, 0.8, 0.4])  # one of them led to it: 1 - 0.5 x 0.75
    assert pairs.aligned(strengths) == pytest.approx([2 / 3, 1 / 3, 2 / 3, 1 / 3])


def test_who_knows_more_ranks_and_guesses_better(home):
    ranked = simple.edges(home / "synthetic")["treatment_lab"]
    assert ranked["conditional probabilities"] < ranked["noisy-or, round 2"]
    guessed = simple.masked(home / "synthetic")
    assert guessed["frequency"] < guessed["its own treatments known"]
    found = simple.label(home / "synthetic", "d1_m1")
    assert found["encounters"] == 4000 and found["aucpr"] > 0.2  # by chance it would be the prevalence, 0.03


def test_areas_at_thresholds_are_those_of_tensorflow():
    # Many thresholds: near the exact areas. Few: tf.compat.v1.metrics.auc (TensorFlow 2) on the same numbers.
    truth = np.arange(200) % 7 == 0
    logits = np.sin(np.arange(200) * 1.7) * 6 - 5 + truth * 4
    probabilities = 1 / (1 + np.exp(-logits))
    exact = average_precision_score(truth, probabilities), roc_auc_score(truth, probabilities)
    assert simple.interpolated(truth, probabilities, 200_000) == pytest.approx(exact, abs=0.01)
    assert simple.interpolated(truth, probabilities) == pytest.approx((0.494139, 0.700343), abs=1e-6)
