"""Weights of labels, by each algorithm and by ``auto``; a row given twice is the same as its cost doubled."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from core.problem import Problem
from core.registry import find_algorithm
from core.train import Training, TrainingContext, TrainingTask, train
from tests.core.problems import small, solve
from tests.core.selection.pools import Pool, error, pool

WEIGHTED = ("svm", "tsvm", "kernel_svm", "laplacian_rls", "auto")


def weighted(
    data: Pool, weights: NDArray[np.float64], algorithm: str = "auto", options: dict[str, Any] | None = None
) -> Training:
    task = TrainingTask(data.rows, data.class_indices, ["c0", "c1"], algorithm, options or {}, weights=weights)
    return train(task, TrainingContext(threads=1))


@pytest.mark.parametrize("algorithm", WEIGHTED)
def test_equal_weights_change_no_bit(algorithm: str) -> None:
    data = pool(0, [0.6, 0.4], n=120)
    found, plain = (weighted(data, np.full(120, weight), algorithm) for weight in (4.0, 1.0))
    np.testing.assert_array_equal(found.scores, plain.scores)


@pytest.mark.parametrize("algorithm", WEIGHTED)
def test_a_label_of_weight_0_is_none(algorithm: str) -> None:
    data = pool(0, [0.6, 0.4], n=120)
    labeled, weights = np.flatnonzero(data.class_indices >= 0), np.ones(120)
    weights[labeled[:2]] = 0.0
    found = weighted(data, weights, algorithm)
    assert set(labeled[:2]) <= set(found.unlabeled.tolist())
    without = data.class_indices.copy()
    without[labeled[:2]] = -1
    plain = weighted(data._replace(class_indices=without), np.ones(120), algorithm)
    np.testing.assert_array_equal(found.scores, plain.scores)


@pytest.mark.parametrize("options", [{}, {"probabilities": True}])
def test_a_label_that_weighs_three_times_as_much_is_the_same_document_three_times(options: dict[str, Any]) -> None:
    data = pool(1, [0.5, 0.5], n=120)
    labeled, weights = np.flatnonzero(data.class_indices >= 0), np.ones(120)
    weights[labeled[:5]] = 3.0
    repeated = np.concatenate([np.arange(120), labeled[:5], labeled[:5]])
    thrice = Pool(data.rows.taken(repeated), data.class_indices[repeated], data.truth[repeated])
    options = {"tolerance": 1e-12, **options}
    found, plain = weighted(data, weights, "svm", options), weighted(thrice, np.ones(130), "svm", options)
    np.testing.assert_allclose(found.scores, plain.scores, atol=1e-6)
    assert np.abs(found.scores - weighted(data, np.ones(120), "svm", options).scores).max() > 1e-3


def test_auto_goes_by_the_labels_that_weigh() -> None:
    """A third of 90 labels is wrong, and the owner knows of which it may be."""
    gained = []
    for seed in range(3):
        data = pool(seed, [0.5, 0.5], per_class=45, gap=1.6)
        labeled, doubtful = np.flatnonzero(data.class_indices >= 0), np.ones(400)
        wrong = np.random.default_rng(seed).permutation(labeled)[:30]
        flipped = data.class_indices.copy()
        flipped[wrong] = 1 - flipped[wrong]
        doubtful[wrong] = 0.02
        data = data._replace(class_indices=flipped)
        gained.append(error(weighted(data, np.ones(400)), data) - error(weighted(data, doubtful), data))
    assert min(gained) > 0.02


class Case(NamedTuple):
    """Options of an algorithm, and how close its solutions come."""

    options: dict[str, Any]
    objective: float
    """relative difference of the objectives, at most"""
    scores: float
    """difference of the scores of unlabeled rows, at most"""
    unit: float = 3.7
    """cost of a row that is there once, of no meaning where losses are means"""


LINEAR = {"lambda": 1e-2, "positive_fraction": 0.4}
RBF = {"kernel": "rbf", "gamma": 0.2, "C": 2.0, "tolerance": 1e-6}
CASES = {
    "svm": Case({"tolerance": 1e-17}, 1e-10, 1e-7),
    # its constraint counts rows: unlabeled ones have one weight, or two copies of a row may get different labels
    "tsvm": Case({**LINEAR, "tolerance": 1e-14}, 1e-8, 1e-5),
    "da": Case({**LINEAR, "tolerance": 1e-12}, 1e-5, 1e-3),
    "gradient_tsvm": Case({**LINEAR, "tolerance": 1e-14}, 1e-8, 1e-5),
    "coregularized_svm": Case(LINEAR, 1e-6, 1e-5),
    "cuts3vm": Case({"C": 8.0, "C_u": 5.0, "epsilon": 1e-4, "positive_fraction": 0.4}, 1e-5, 1e-3),
    "kernel_svm": Case(RBF, 1e-5, 1e-3, 1.0),
    "ramp_svm": Case(RBF, 1e-5, 1e-3, 1.0),
    "cccp_tsvm": Case({**RBF, "C_u": 0.3}, 1e-5, 1e-3, 1.0),
    # each copy has a ridge of its own
    "ctsvm": Case({"regularisation": 1e-6, "tolerance": 1e-7, "gamma": 0.2}, 1e-4, 1e-3),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("algorithm", CASES)
def test_a_row_given_twice_is_its_cost_doubled(algorithm: str, seed: int) -> None:
    data, case = small(seed, n=48, labeled=16, gap=0.4), CASES[algorithm]
    times = np.random.default_rng(seed).integers(1, 4, 48)
    if algorithm == "tsvm":
        times[16:] = 2
    repeated = Problem.of(data.rows.taken(np.repeat(np.arange(48), times)), np.repeat(data.y, times[:16]))
    costly = Problem.of(data.rows, data.y, np.array(case.unit * times))
    options = find_algorithm(algorithm).options.parse(case.options)
    one, other, even = (solve(algorithm, problem, options) for problem in (repeated, costly, data.problem))
    assert other.objective == pytest.approx(one.objective, rel=case.objective)
    np.testing.assert_allclose(
        np.repeat(other.unlabeled_scores, times[16:]), one.unlabeled_scores, rtol=0, atol=case.scores
    )
    assert np.abs(other.unlabeled_scores - even.unlabeled_scores).max() > 10 * case.scores, "weights matter here"


def test_the_labeled_fraction_is_by_cost() -> None:
    data = small(0)
    costs = np.ones(40)
    costs[:8] = np.where(data.y > 0, 3.0, 1.0)
    n_positive = int((data.y > 0).sum())
    assert Problem.of(data.rows, data.y, costs).labeled_fraction() == pytest.approx(
        3 * n_positive / (3 * n_positive + 8 - n_positive)
    )
