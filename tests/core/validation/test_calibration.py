"""Scores become calibrated probabilities."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from core.models.io import read_model
from core.models.model import LinearModel
from core.numerics.elementary import log_add_exp
from core.validation import calibration
from core.validation.calibration import (
    Calibration,
    fit_calibration,
    fit_sigmoid,
    inverse_temperature,
    iterative_proportional_fitting,
)
from tests.there import there


def test_the_sigmoid_is_the_minimum(rng: np.random.Generator) -> None:
    positive = rng.random(30) < 0.4
    scores = rng.standard_normal((30,)) + positive
    n_positive, n_negative = positive.sum(), (~positive).sum()
    targets = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    weights = min(n_positive, n_negative) / np.where(positive, n_positive, n_negative)

    def value(point: NDArray[np.float64]) -> float:
        margins = point[0] * scores + point[1]
        prior = ((point[0] - 2) / 2) ** 2 / 2 + point[1] ** 2 / 2
        return float(weights @ (np.logaddexp(0, margins) - targets * margins) + prior)

    np.testing.assert_allclose(fit_sigmoid(scores, positive), minimize(value, [1.0, 0.0], tol=1e-10).x, atol=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_few_separated_labels_do_not_make_certain(sign: int) -> None:
    scores = sign * np.array([5.0, 6.0, -5.0, -6.0])
    slope, offset = fit_sigmoid(scores, np.array([True, True, False, False]))
    assert 0 < slope < 3
    assert abs(offset) < 0.1


def test_the_search_for_a_sigmoid_ends_where_values_cannot_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluations = 0

    def counted(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
        nonlocal evaluations
        evaluations += 1
        return log_add_exp(left, right)

    monkeypatch.setattr(calibration, "log_add_exp", counted)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        positive = rng.random(int(rng.integers(5, 60))) < rng.uniform(0.2, 0.8)
        evaluations = 0
        calibration.fit_sigmoid(
            rng.normal(size=len(positive)) + (2 * positive - 1) * float(rng.choice([0.0, 0.5, 2.0])), positive
        )
        assert evaluations < 100, f"seed {seed}"


def test_with_labels_of_one_side_only_the_prior_stays() -> None:
    assert fit_sigmoid(np.ones(3), np.array([True, True, True])) == (2.0, 0.0)


@pytest.mark.parametrize("fractions", [[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])
def test_odds_bring_the_mean_to_the_fractions(fractions: list[float]) -> None:
    positive = np.random.default_rng(0).random((500,))
    likelihoods = np.column_stack([1 - positive, positive])
    odds = iterative_proportional_fitting(likelihoods, np.array(fractions))
    probabilities = likelihoods * odds
    means = (probabilities / probabilities.sum(axis=1, keepdims=True)).mean(axis=0)
    np.testing.assert_allclose(means, fractions, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_hold_what_they_promise(n_classes: int) -> None:
    """Labels of even classes, unlabeled documents of uneven ones: sureness and hits agree, and the means are the
    fractions.
    """
    rng = np.random.default_rng(1)
    fractions = np.array([0.85, 0.15]) if n_classes == 2 else np.array([0.6, 0.2, 0.15, 0.05])

    def scores_of(class_indices: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        if n_classes == 2:
            return np.asarray(0.8 * rng.standard_normal((len(class_indices), 1)) + 2 * class_indices[:, None] - 1)
        return np.asarray(
            0.8 * rng.standard_normal((len(class_indices), n_classes))
            + 2 * (class_indices[:, None] == np.arange(n_classes))
            - 1
        )

    labels, truth = np.arange(400) % n_classes, rng.choice(n_classes, 20_000, p=fractions)
    held_out, scores = scores_of(labels), scores_of(truth)
    probabilities = fit_calibration(held_out, labels, scores, fractions).probabilities(scores)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(probabilities.mean(axis=0), fractions, atol=1e-3)
    sure, hit = probabilities.max(axis=1), probabilities.argmax(axis=1) == truth
    bins = np.minimum((sure * 10).astype(int), 9)
    assert np.abs(np.bincount(bins, hit - sure, 10)).sum() / len(truth) < 0.05
    ignorant = fit_calibration(held_out, labels, scores, None).probabilities(scores)
    assert np.abs(ignorant.mean(axis=0) - fractions).max() > 0.03


def test_many_classes_of_few_labels_are_as_sure_as_all_labels_together_allow() -> None:
    rng = np.random.default_rng(2)
    n_classes = 20

    def scores_of(class_indices: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        return np.asarray(
            0.5 * rng.standard_normal((len(class_indices), n_classes))
            + 1.4 * (class_indices[:, None] == np.arange(n_classes))
            - 0.9
        )

    labels, truth = np.arange(200) % n_classes, np.arange(10_000) % n_classes
    held_out, scores = scores_of(labels), scores_of(truth)
    probabilities = fit_calibration(held_out, labels, scores, np.full(n_classes, 1 / n_classes)).probabilities(scores)
    hits = np.mean(probabilities.argmax(axis=1) == truth)
    assert probabilities.max(axis=1).mean() == pytest.approx(hits, abs=0.05)


@pytest.mark.parametrize("true_inverse_temperature", [0.5, 1.0, 3.0])
def test_the_inverse_temperature_is_found(true_inverse_temperature: float, rng: np.random.Generator) -> None:
    logits = rng.standard_normal((4000, 5)) * 2
    probabilities = np.exp(true_inverse_temperature * logits)
    class_indices = np.array([rng.choice(5, p=row / row.sum()) for row in probabilities])
    assert inverse_temperature(logits, class_indices) == pytest.approx(true_inverse_temperature, rel=0.15)


def test_rows_that_were_never_left_out_do_not_count() -> None:
    held_out = np.array([[1.0], [-1.0], [2.0], [-2.0], [np.nan]])
    class_indices = np.array([1, 0, 1, 0, 0])
    whole, part = (
        fit_calibration(held_out[:n], class_indices[:n], np.zeros((3, 1)), np.array([0.5, 0.5])) for n in (5, 4)
    )
    assert whole.slopes == part.slopes
    assert whole.offsets == part.offsets


def test_a_model_keeps_its_calibration() -> None:
    calibration = Calibration(np.array([1.5]), np.array([-0.2]), np.array([2.0, 0.5]))
    model = LinearModel(
        ["a", "b"], 3, np.arange(3, dtype=np.uint32), np.ones((3, 1)), np.zeros(1), calibration=calibration
    )
    arrays, meta = model.to_arrays()
    read = read_model(arrays, json.loads(json.dumps(meta)))
    scores = np.array([[0.3], [-2.0]])
    found = there(read.probabilities(scores))
    np.testing.assert_array_equal(found, calibration.probabilities(scores))
    assert LinearModel(["a", "b"], 3, *arrays.values()).probabilities(scores) is None


def test_raking_in_slices_is_raking_at_once_and_asks_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    likelihoods, fractions = np.exp(np.random.default_rng(0).normal(size=(500, 3))), np.array([0.6, 0.3, 0.1])
    kept, asked = likelihoods.copy(), list[int]()
    whole = iterative_proportional_fitting(likelihoods, fractions)
    monkeypatch.setattr(calibration, "_AT_ONCE", 300)
    np.testing.assert_allclose(iterative_proportional_fitting(likelihoods, fractions, lambda: asked.append(1)), whole)
    assert len(asked) >= 5
    np.testing.assert_array_equal(likelihoods, kept)
