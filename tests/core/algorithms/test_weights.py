"""A row given twice is the same as its cost doubled; not where neighbours count, or random separators."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from core.problem import Problem
from core.registry import find_algorithm
from tests.core.problems import small, solve


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
