"""Deterministic annealing: balanced beliefs all along, the least J of the path, and the slow reference; in the space of
a kernel against the plain annealing over a root of the kernel matrix.
"""

from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import expit

from core.algorithms import annealing as module
from core.losses.balance import BalancedProbabilities, balanced_probabilities
from core.options.linear import AnnealingOptions
from core.options.subspace import KernelAnnealingOptions
from core.problem import Expansion, Problem, Result, Status
from core.train import TrainingTask, train
from tests.core.problems import Array, Small, small, solve, weights_of
from tests.reference import annealing as reference
from tests.reference import mfn, transductive
from tests.reference.annealing import anneal

TEMPERATURES = [10 / 1.5**k for k in range(30)]


class Belief(NamedTuple):
    """One call of OPTIMIZE-P, in units of λ'."""

    gains: Array
    weights: Array
    fraction: float
    temperature: float
    answer: BalancedProbabilities


Run = Callable[[Problem, AnnealingOptions], tuple[Result, list[Belief]]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Solve and record all beliefs."""

    def solve_recorded(problem: Problem, options: AnnealingOptions) -> tuple[Result, list[Belief]]:
        calls: list[Belief] = []

        def recorded(
            gains: Array, weights: Array, fraction: float, temperature: float, start: float | None = None
        ) -> BalancedProbabilities:
            answer = balanced_probabilities(gains, weights, fraction, temperature, start)
            calls.append(Belief(gains.copy(), weights, fraction, temperature, answer))
            return answer

        monkeypatch.setattr(module, "balanced_probabilities", recorded)
        return solve("da", problem, options), calls

    return solve_recorded


def overlapping(seed: int, n: int = 40) -> Small:
    return small(seed, n=n, labeled=8, gap=0.4)


def options(**given: float | None) -> AnnealingOptions:
    return AnnealingOptions.parse({"lambda": 1e-2, "positive_fraction": 0.4, "tolerance": 1e-12, **given})


@pytest.mark.parametrize("seed", range(6))
def test_beliefs_are_balanced_and_minimal_all_along(run: Run, seed: int) -> None:
    result, calls = run(overlapping(seed).problem, options(lambda_u=0.5))
    assert result.status is Status.CONVERGED
    assert len({call.temperature for call in calls}) > 10
    for call in calls:
        p = call.answer.positive
        assert call.fraction == 0.4
        assert call.weights @ p == pytest.approx(0.4, abs=1e-9)
        np.testing.assert_allclose(
            p, expit((call.answer.multiplier - call.gains) / call.temperature), rtol=1e-8, atol=1e-300
        )


def test_the_temperature_starts_and_falls_as_told(run: Run) -> None:
    calls = run(overlapping(0).problem, options(lambda_u=0.5, temperature=8.0, cooling=2.0))[1]
    temperatures = [temperature for temperature, _ in groupby(call.temperature for call in calls)]
    np.testing.assert_allclose(temperatures, [8.0 / 2**k for k in range(len(temperatures))], rtol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_least_objective_of_the_path_is_returned(seed: int) -> None:
    data = overlapping(seed)
    result = solve("da", data.problem, options())
    w = weights_of(result)
    assert result.objective == pytest.approx(transductive.J_of(data.X, data.y, 1e-2, 1.0, w), rel=1e-10)
    np.testing.assert_allclose(result.unlabeled_scores, data.X[8:] @ w, atol=1e-9)
    told = [point.objective for point in result.trace if np.isfinite(point.objective)]
    assert len(told) > 10
    assert result.objective <= min(told)
    assert told == sorted(told, reverse=True)


def test_the_least_objective_need_not_be_the_last(run: Run) -> None:
    """Else returning the last iterate would pass all other tests."""
    earlier = 0
    for seed in range(12):
        data = overlapping(seed)
        path = reference.anneal(data.X, data.y, 1e-2, 1.0, 0.2, TEMPERATURES)
        if transductive.J_of(data.X, data.y, 1e-2, 1.0, path.last) > path.J * (1 + 1e-3):
            earlier += 1
            assert run(data.problem, options(positive_fraction=0.2))[0].objective == pytest.approx(path.J, rel=1e-2)
    assert earlier >= 2


@pytest.mark.parametrize("lambda_u", [0.1, 1.0, 4.0])
def test_the_reference_agrees(lambda_u: float) -> None:
    """Core retrains roughly, so that the two paths are not the same; their ends are, on most problems, and J is no
    worse on the whole.
    """
    close, ratios = 0, []
    for seed in range(8):
        data = overlapping(seed)
        expected = reference.anneal(data.X, data.y, 1e-2, lambda_u, 0.4, TEMPERATURES)
        result = solve("da", data.problem, options(lambda_u=lambda_u))
        ratios.append(result.objective / expected.J)
        close += abs(ratios[-1] - 1) < 1e-3
    assert close >= 6
    assert np.mean(ratios) <= 1.005


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> list[module.AnnealingPath]:
    """The states of all runs: the result is the iterate of least J, a stage's end is another."""
    kept: list[module.AnnealingPath] = []

    class Kept(module.AnnealingPath):
        def __init__(self, problem: Problem, options: AnnealingOptions) -> None:
            super().__init__(problem, options)
            kept.append(self)

    monkeypatch.setattr(module, "AnnealingPath", Kept)
    return kept


@pytest.mark.parametrize("temperature", [0.1, 0.3, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_fixed_temperature_is_one_stage_to_a_stationary_point(
    paths: list[module.AnnealingPath], run: Run, seed: int, temperature: float
) -> None:
    data = overlapping(seed)
    result, calls = run(data.problem, options(fixed_temperature=temperature, lambda_u=0.5))
    assert result.status is Status.CONVERGED
    assert {call.temperature for call in calls} == {temperature}
    assert {str(point.phase) for point in result.trace} == {"da/stage=0"}
    w, p = paths[0].iterate.coefficients, paths[0].beliefs
    even = np.full(32, 1 / 32)
    costs = transductive.labeled_costs(data.y, 40)
    costs[0][8:], costs[1][8:] = 0.5 * p * even, 0.5 * (1 - p) * even
    np.testing.assert_allclose(
        p, reference.balanced(reference.gains_of(data.X[8:] @ w, 0.5), even, 0.4, temperature * 0.5), atol=1e-6
    )
    np.testing.assert_allclose(w, mfn.minimise(data.X, *costs, 1e-2), atol=5e-3)


@pytest.mark.parametrize("seed", range(8))
def test_at_a_high_temperature_the_reference_ends_at_the_same_point(
    paths: list[module.AnnealingPath], seed: int
) -> None:
    """There the objective has one minimum."""
    data = overlapping(seed)
    solve("da", data.problem, options(fixed_temperature=3.0))
    np.testing.assert_allclose(
        paths[0].iterate.coefficients, reference.anneal(data.X, data.y, 1e-2, 1.0, 0.4, [3.0]).last, atol=5e-3
    )


@pytest.mark.parametrize(
    "given", [{}, {"temperature": 0.5}, {"fixed_temperature": 0.3}, {"fixed_temperature": 3.0}], ids=str
)
@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_the_stage_objective_falls_within_a_phase(seed: int, given: dict[str, float]) -> None:
    """The objective at a temperature is the loss and the entropy together (Eqn. 8); the loss alone rises at times."""
    trace = solve("da", overlapping(seed).problem, options(**given)).trace
    for phase, points in groupby(trace, key=lambda point: point.phase):
        values = np.array([point.stage_objective for point in points])
        assert (np.diff(values) <= 1e-12 * np.abs(values[:-1])).all(), phase


def test_the_stage_objective_is_equation_8(paths: list[module.AnnealingPath]) -> None:
    data = overlapping(2)
    result = solve("da", data.problem, options(fixed_temperature=0.5, lambda_u=0.7))
    w, p = paths[0].iterate.coefficients, paths[0].beliefs
    costs = transductive.labeled_costs(data.y, 40)
    costs[0][8:], costs[1][8:] = 0.7 * p / 32, 0.7 * (1 - p) / 32
    expected = mfn.objective(data.X, *costs, 1e-2, w) - 0.5 * 0.5 * 0.7 * reference.entropy(p)
    assert result.trace[-1].stage_objective == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_a_middle_stage_that_runs_out_of_alternations_does_not_spoil_the_end(
    paths: list[module.AnnealingPath], seed: int
) -> None:
    """It hands its iterate to the next temperature; the last stage alone says whether the annealing has converged."""
    result = solve("da", overlapping(seed).problem, options(max_alternations=4))
    turns = [
        sum(point.iteration == 0 for point in points)
        for _, points in groupby(result.trace, key=lambda point: point.phase)
    ]
    assert 4 in turns[:-1], "a stage that is not the last has used them all"
    assert result.status is (Status.CONVERGED if turns[-1] < 4 else Status.ITERATION_LIMIT)


def test_out_of_alternations_at_the_end_says_what_helps() -> None:
    data = overlapping(0)
    few, many = (
        train(
            TrainingTask(
                data.rows,
                data.class_indices,
                ["a", "b"],
                "da",
                {"fixed_temperature": 0.5, "max_alternations": most, "positive_fraction": 0.5},
            )
        )
        for most in (1, 1000)
    )
    assert few.status is Status.ITERATION_LIMIT
    assert "raise max_alternations" in few.warnings[0]
    assert many.status is Status.CONVERGED
    assert not many.warnings


def matrix(dense: Array, gamma: float) -> Array:
    return np.asarray(np.exp(-gamma * ((dense[:, None] - dense[None]) ** 2).sum(axis=2)))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_annealing_over_a_root_of_the_kernel_matrix(seed: int) -> None:
    data = small(seed, n=40, labeled=8, gap=0.5)
    values, vectors = np.linalg.eigh(matrix(data.X[:, :-1], 0.3))
    Z = np.column_stack([vectors * np.sqrt(np.maximum(values, 0)), np.ones(40)])
    temperatures = [10 / 1.5**stage for stage in range(30)]
    expected = anneal(Z, data.y, 0.01, 1.0, 0.45, temperatures)
    options = KernelAnnealingOptions.parse(
        {"lambda": 0.01, "positive_fraction": 0.45, "gamma": 0.3, "tolerance": 1e-10}
    )
    result = solve("kernel_da", data.problem, options)
    assert result.objective == pytest.approx(expected.J, rel=1e-3)
    np.testing.assert_allclose(result.unlabeled_scores, Z[8:] @ expected.w, atol=2e-2)


@pytest.mark.parametrize("most", [1, 7])
def test_a_model_keeps_no_more_documents_than_it_may(most: int) -> None:
    data = small(0, n=40, labeled=8, gap=0.5)
    options = {"positive_fraction": "labeled", "gamma": 0.3, "most_columns": most}
    training = train(TrainingTask(data.rows, data.class_indices, ["a", "b"], "kernel_da", options))
    assert training.model.facts()["n_support"] == most
    np.testing.assert_allclose(training.model.scores(data.rows)[training.unlabeled], training.scores, atol=1e-4)


def test_documents_that_are_spanned_by_others_are_not_kept() -> None:
    data = small(0, n=40, labeled=8)
    twice = data.rows.taken(np.concatenate([np.arange(40), np.arange(8, 40)]))
    class_indices = np.concatenate([data.class_indices, np.full(32, -1)]).astype(np.int32)
    training = train(TrainingTask(twice, class_indices, ["a", "b"], "kernel_da", {"positive_fraction": "labeled"}))
    assert len(training.model.to_arrays()[0]["weights"]) <= 40


def test_values_out_of_range_are_told() -> None:
    data = small(0, n=40, labeled=8)
    huge = data.rows._replace(values=data.rows.values * np.float32(1e15))
    options = KernelAnnealingOptions.parse({"kernel": "poly", "gamma": 1.0, "positive_fraction": 0.5})
    result = solve("kernel_da", type(data.problem).of(huge, data.y), options)
    assert result.status.value == "numerical_error"
    assert isinstance(result.decision, Expansion)
