"""The safe SVM: its labels against all labels there are, and models that no separator makes worse."""

from itertools import product

import numpy as np
import pytest

from core.algorithms import s4vm
from core.options.linear import SvmOptions
from core.options.subspace import S4vmOptions
from core.problem import Status
from tests.core.problems import Array, answer_of, small, solve, weights_of

COUNT = 9


def safest_labels(own: Array, separators: Array, weights: Array, loss_weight: float) -> Array | None:
    """The result of the steps."""
    found: Array | None = answer_of(s4vm.safest_labels(own, separators, weights, loss_weight))[0]
    return found


def worst_gain(labels: Array, own: Array, separators: Array, weights: Array, loss_weight: float) -> float:
    """Gains less losses for the worst separator."""
    gained = [weights[(labels == each) & (own != each)].sum() for each in separators]
    lost = [weights[(labels != each) & (own == each)].sum() for each in separators]
    return float(np.min(np.array(gained) - loss_weight * np.array(lost)))


@pytest.mark.parametrize("loss_weight", [0.5, 3.0])
@pytest.mark.parametrize("seed", range(8))
def test_the_labels_gain_as_much_as_the_best_of_all(seed: int, loss_weight: float) -> None:
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(COUNT) < 0.5, 1.0, -1.0)
    own, *others = (np.where(rng.random(COUNT) < flips, -truth, truth) for flips in (0.4, 0.1, 0.2, 0.2))
    separators, weights = np.stack(others), rng.random(COUNT) + 0.5
    gains = {
        each: worst_gain(np.array(each), own, separators, weights, loss_weight)
        for each in product((-1.0, 1.0), repeat=COUNT)
    }
    best = max(gains.values())
    found = safest_labels(own, separators, weights, loss_weight)
    if found is None:
        assert best <= 0.35 * weights.sum(), "what a relaxation and its rounding lose"
    else:
        assert 0 < gains[tuple(found)] <= best
        assert gains[tuple(found)] >= best - 0.35 * weights.sum()


def test_with_one_separator_its_labels_are_taken_and_with_none_that_differs_the_own() -> None:
    own, other = np.array([1.0, -1.0, 1.0]), np.array([1.0, 1.0, -1.0])
    np.testing.assert_array_equal(safest_labels(own, other[None], np.ones(3), 3.0), other)
    assert safest_labels(own, np.stack([own, own]), np.ones(3), 3.0) is None


def test_separators_that_contradict_each_other_leave_the_svm() -> None:
    own = np.array([1.0, 1.0, -1.0, -1.0])
    assert safest_labels(own, np.stack([own * [1, -1, 1, 1], own * [-1, 1, 1, 1]]), np.ones(4), 3.0) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_model_learns_the_labels_or_is_the_svm(seed: int) -> None:
    data = small(seed, n=80, labeled=10, gap=0.7)
    options = S4vmOptions.parse({"lambda": 0.01, "positive_fraction": 0.45, "starts": 6, "separators": 4})
    result = solve("s4vm", data.problem, options)
    plain = solve("svm", data.problem, SvmOptions(lambda_=0.01))
    errors = [float(np.mean(np.sign(each.unlabeled_scores) != data.truth[10:])) for each in (result, plain)]
    assert result.status is Status.CONVERGED
    assert errors[0] <= errors[1] + 0.02
    np.testing.assert_array_equal(weights_of(solve("s4vm", data.problem, options)), weights_of(result))


def test_it_gains_where_the_separators_are_right() -> None:
    ours: list[float] = []
    plain: list[float] = []
    for seed in range(10):
        data = small(seed, n=120, labeled=8, gap=0.7)
        options = S4vmOptions.parse({"lambda": 0.01, "positive_fraction": 0.45})
        for name, given, errors in (("s4vm", options, ours), ("svm", SvmOptions(lambda_=0.01), plain)):
            found = solve(name, data.problem, given)
            errors.append(float(np.mean(np.sign(found.unlabeled_scores) != data.truth[8:])))
    assert np.mean(ours) < np.mean(plain) - 0.01
    assert max(np.array(ours) - plain) <= 0.03
