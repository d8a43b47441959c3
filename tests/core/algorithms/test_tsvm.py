"""The transductive SVM: every switch and every retraining lowers the objective, nothing is left to switch, and the slow
reference agrees.
"""

from collections.abc import Callable
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from core.algorithms import tsvm as module
from core.algorithms.tsvm import improving_pairs, weight_stages
from core.losses.balance import threshold_labels
from core.options.linear import TsvmOptions
from core.problem import Problem, Result, Status
from core.progress import Phase
from tests.core.problems import Array, Small, small, solve, weights_of
from tests.reference import mfn, transductive

SEEDS = range(12)
OVERLAP = 0.25


class Switch(NamedTuple):
    """One look for pairs, and its findings."""

    scores: Array
    labels: Array
    weights: Array
    chosen: NDArray[np.intp]

    def loss(self, labels: Array) -> float:
        return float(self.weights @ np.maximum(0, 1 - labels * self.scores) ** 2)


Recorded = tuple[Result, list[Switch]]
Run = Callable[..., Recorded]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Solve and record every look for pairs."""

    def solve_recorded(problem: Problem, options: TsvmOptions) -> Recorded:
        switches: list[Switch] = []

        def recorded(scores: Array, labels: Array, weights: Array, most: int | None) -> NDArray[np.intp]:
            chosen = improving_pairs(scores, labels, weights, most)
            switches.append(Switch(scores.copy(), labels.copy(), weights, chosen))
            return chosen

        monkeypatch.setattr(module, "improving_pairs", recorded)
        return solve("tsvm", problem, options), switches

    return solve_recorded


def overlapping(seed: int, n: int = 60) -> Small:
    return small(seed, n=n, labeled=8, gap=OVERLAP)


def options(**given: Any) -> TsvmOptions:
    return TsvmOptions.parse({"lambda": 1e-2, "positive_fraction": 0.4, "tolerance": 1e-12, **given})


@pytest.mark.parametrize("most", [1, 3, None])
def test_every_switch_lowers_the_objective_and_keeps_the_count(run: Run, most: int | None) -> None:
    switched = 0
    for seed in SEEDS:
        result, switches = run(overlapping(seed).problem, options(max_switches=most))
        assert result.status is Status.CONVERGED
        for switch in switches:
            after = switch.labels.copy()
            after[switch.chosen] *= -1
            assert after.sum() == switch.labels.sum() == 2 * round(0.4 * 52) - 52
            assert len(switch.chosen) <= 2 * (most or 52)
            if switch.chosen.size:
                assert switch.loss(after) < switch.loss(switch.labels)
        switched += sum(switch.chosen.size > 0 for switch in switches)
    assert switched > 20, "the problems are hard enough to make it switch"


@pytest.mark.parametrize("most", [1, None])
def test_the_objective_never_rises_within_a_stage(most: int | None) -> None:
    retrained = 0
    for seed in SEEDS:
        trace = solve("tsvm", overlapping(seed).problem, options(max_switches=most)).trace
        for phase, points in groupby(trace, key=lambda point: point.phase):
            values = [point.stage_objective for point in points]
            retrained += len(values) > 2 and phase != Phase("svm")
            assert all(after <= before * (1 + 1e-12) for before, after in pairwise(values)), phase
    assert retrained > 10


@pytest.mark.parametrize("most", [1, 2, None])
def test_at_the_end_w_is_stationary_and_no_pair_is_left(run: Run, most: int | None) -> None:
    for seed in SEEDS:
        data = overlapping(seed)
        result, switches = run(data.problem, options(max_switches=most))
        w, labels = weights_of(result), switches[-1].labels
        costs = transductive.labeled_costs(data.y, 60)
        costs[0][8:], costs[1][8:] = (labels > 0) / 52, (labels < 0) / 52
        objective = mfn.objective(data.X, *costs, 1e-2, w)
        assert np.sum(mfn.gradient(data.X, *costs, 1e-2, w) ** 2) / 2e-2 <= 1e-12 * objective * 1.001
        np.testing.assert_allclose(result.unlabeled_scores, data.X[8:] @ w, atol=1e-9)
        assert not transductive.switch(labels.copy(), data.X[8:] @ w, None)
        assert result.objective == pytest.approx(transductive.J_of(data.X, data.y, 1e-2, 1.0, w), rel=1e-10)
        assert result.objective <= objective * (1 + 1e-12)


@pytest.mark.parametrize("lambda_u", [0.1, 1.0])
@pytest.mark.parametrize("most", [1, None])
def test_the_reference_agrees(run: Run, most: int | None, lambda_u: float) -> None:
    """Core retrains roughly between switches and may end at other labels; with the same ones J is the same, and on the
    whole J is no worse.
    """
    same, ratios = 0, []
    for seed in range(10):
        data = overlapping(seed, n=36)
        expected = transductive.tsvm(data.X, data.y, 1e-2, lambda_u, 0.4, most)
        result, switches = run(data.problem, options(max_switches=most, lambda_u=lambda_u))
        if np.array_equal(switches[-1].labels, expected.labels):
            same += 1
            assert result.objective == pytest.approx(expected.J, rel=1e-6)
            np.testing.assert_allclose(weights_of(result), expected.w, atol=1e-4)
        ratios.append(result.objective / expected.J)
    assert same >= 6
    assert np.mean(ratios) <= 1.01


def test_the_tolerance_is_that_of_the_whole_not_of_the_rough_retraining() -> None:
    data = overlapping(1)
    rough, exact = (solve("tsvm", data.problem, options(tolerance=tolerance)).objective for tolerance in (1e-6, 1e-14))
    assert rough == pytest.approx(exact, rel=2e-6)


@pytest.mark.parametrize("final", [1e-7, 1e-5, 1.1e-5, 0.3, 1.0, 1000.0])
def test_stages_grow_to_exactly_the_weight(final: float) -> None:
    stages = weight_stages(final)
    assert stages[-1] == final
    assert all(before < after <= 2 * before * (1 + 1e-12) for before, after in pairwise(stages))
    assert stages == transductive.stages(final)
    assert stages[0] == min(1e-5, final)


def test_the_stages_are_run_one_after_the_other() -> None:
    trace = solve("tsvm", overlapping(0).problem, options()).trace
    phases = [str(phase) for phase, _ in groupby(trace, key=lambda point: point.phase)]
    assert phases == ["tsvm/svm", *(f"tsvm/stage={k}" for k in range(len(weight_stages(1.0))))]
    fractions = [point.fraction for point in trace]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] <= fractions[-1] <= 1


@pytest.mark.parametrize("most", [1, 2, None])
@pytest.mark.parametrize("seed", range(20))
def test_switching_is_that_of_the_paper(seed: int, most: int | None) -> None:
    rng = np.random.default_rng(seed)
    scores, labels = rng.standard_normal(25) * 1.5, np.where(rng.random(25) < 0.5, 1.0, -1.0)
    expected, done = labels.copy(), labels.copy()
    transductive.switch(expected, scores, most)
    done[improving_pairs(scores, labels, np.full(25, 1 / 25), most)] *= -1
    np.testing.assert_array_equal(done, expected)


@pytest.mark.parametrize("seed", range(10))
def test_weighted_pairs_each_lower_the_loss(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, labels, weights = rng.standard_normal(30), np.where(rng.random(30) < 0.5, 1.0, -1.0), rng.random(30) * 5
    pairs = improving_pairs(scores, labels, weights, None)
    assert pairs.size
    for i, j in pairs.reshape(2, -1).T:
        assert (labels[i], labels[j]) == (1, -1)
        before, after = (
            sum(weights[k] * max(0, 1 - sign * labels[k] * scores[k]) ** 2 for k in (i, j)) for sign in (1, -1)
        )
        assert after < before


def test_threshold_labels_are_the_largest_scores_and_ties_go_by_position() -> None:
    scores = np.array([0.5, 2.0, 0.5, -1.0, 0.5])
    np.testing.assert_array_equal(threshold_labels(scores, 0.4), [1, 1, -1, -1, -1])
    np.testing.assert_array_equal(threshold_labels(scores, 0.0), -np.ones(5))
    np.testing.assert_array_equal(threshold_labels(scores, 1.0), np.ones(5))
    for seed in range(5):
        scores = np.random.default_rng(seed).standard_normal(17)
        np.testing.assert_array_equal(threshold_labels(scores, 0.3), transductive.first_labels(scores, 0.3))


def test_the_fraction_is_that_of_the_labeled_rows_by_default(run: Run) -> None:
    data = overlapping(2)
    switches = run(data.problem, options(positive_fraction="labeled"))[1]
    assert (switches[-1].labels > 0).sum() == round(float((data.y > 0).mean()) * 52)
