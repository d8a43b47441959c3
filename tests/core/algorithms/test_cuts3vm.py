"""CutS3VM against all constraints of its problem, all labels of its rows, and a slow reference of its algorithms."""

from itertools import groupby, pairwise
from typing import Any

import numpy as np
import pytest

from core.algorithms.cuts3vm import planes, solver
from core.options.linear import Cuts3vmOptions
from core.problem import Problem, Result, Status
from core.progress import TracePoint
from core.train import TrainingTask, train
from tests.core.problems import Small, dense_of, rows_of, small, solve, weights_of
from tests.core.watcher import Watcher
from tests.reference import cuts3vm as reference
from tests.reference.mfn import minimise
from tests.reference.transductive import labeled_costs

C, C_U = 8.0, 5.0
GIVEN: dict[str, Any] = {"C": C, "C_u": C_U, "epsilon": 0.02, "positive_fraction": 0.4}


def run(problem: Problem, **given: Any) -> Result:
    return solve("cuts3vm", problem, Cuts3vmOptions.parse(GIVEN | given))


def tiny(seed: int) -> Small:
    return small(seed, n=11, d=3, labeled=4, gap=0.6)


def geometry_of(data: Small) -> reference.Geometry:
    return reference.geometry(data.X[:, :-1], data.y, C, C_U, 0.4)


def rounds_of(result: Result) -> list[list[TracePoint]]:
    points = [point for point in result.trace if "round" in dict(point.phase.steps)]
    return [list(group) for _, group in groupby(points, key=lambda point: point.phase)]


@pytest.mark.parametrize("seed", range(12))
def test_all_constraints_hold_with_the_slack_and_epsilon(seed: int) -> None:
    """Theorem 4, over all 2ⁿ constraints; and the value under the planes is a bound that the objective passes by no
    more than ε.
    """
    data = tiny(seed)
    result = run(data.problem)
    assert result.status is Status.CONVERGED
    w, value = weights_of(result)[:-1], result.trace[-1].stage_objective
    slack = value - 0.5 * float(w @ w)
    needed = list(reference.constraints(geometry_of(data), w))
    assert len(needed) == 2**11
    assert max(needed) <= slack + 0.02 + 1e-9
    assert result.objective == pytest.approx(0.5 * float(w @ w) + max(needed), rel=1e-9)
    assert value - 1e-9 <= result.objective <= value + 0.02 + 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_objective_is_problem_3_and_the_balance_is_kept(seed: int) -> None:
    data = tiny(seed)
    result = run(data.problem)
    assert result.objective == pytest.approx(reference.objective(geometry_of(data), weights_of(result)[:-1]), rel=1e-9)
    np.testing.assert_allclose(result.unlabeled_scores, data.X[4:] @ weights_of(result), atol=1e-12)
    assert result.unlabeled_scores.mean() == pytest.approx(2 * 0.4 - 1, abs=1e-9)


def test_no_point_passes_the_best_labels_and_random_starts_find_them() -> None:
    """Against problem (1) with every labelling of the unlabeled rows tried."""
    found = []
    for seed in range(6):
        data = small(seed, n=9, d=3, labeled=4, gap=0.6)
        least = reference.least(geometry_of(data))
        for given in ({}, {"start": "random", "restarts": 10}):
            result = run(data.problem, **given)
            assert result.objective >= least - 1e-5
        found.append(result.objective <= least * 1.01 + 0.02)
    assert sum(found) >= 5


def test_the_reference_goes_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """|o| always linearised at the last point, as in the paper.

    Rows on the margin itself are in a plane or not by rounding: some ways part.
    """
    monkeypatch.setattr(solver, "_PATIENCE", 1000)
    same = 0
    for seed in range(10):
        data = small(seed, n=24, d=4, labeled=6, gap=0.5)
        start = minimise(data.X[:6], *labeled_costs(data.y, 6), 1 / C)[:-1]
        expected = reference.cuts3vm(reference.geometry(data.X[:, :-1], data.y, C, C_U, 0.4), start, 0.02)
        result = solve("cuts3vm", data.problem, Cuts3vmOptions.parse(GIVEN), init=np.append(start, 0.0))
        if len(rounds_of(result)) == expected.rounds:
            same += 1
            np.testing.assert_allclose(weights_of(result)[:-1], expected.w, atol=2e-3)
            assert result.trace[-1].stage_objective == pytest.approx(expected.value, rel=1e-4)
    assert same >= 7


@pytest.mark.parametrize("C_u", [10.0, 100.0, 1000.0])
def test_it_ends_where_the_paper_would_go_on(C_u: float) -> None:
    for seed in range(6):
        data = small(seed, n=60, labeled=8, gap=0.25)
        assert run(data.problem, C=100.0, C_u=C_u, epsilon=0.01 * (100.0 + C_u)).status is Status.CONVERGED


def test_the_papers_parameters_are_ours_times_the_share_of_the_rows() -> None:
    """C_l = C n / l and C_u' = C_u n / u, in problem (3) as printed."""
    data = tiny(0)
    of, (n, labeled) = geometry_of(data), (11, 4)
    printed = of._replace(
        weights=np.append(np.full(4, (C * n / labeled) / n), np.full(7, (C_U * n / (n - labeled)) / n))
    )
    result = run(data.problem)
    assert result.objective == pytest.approx(reference.objective(printed, weights_of(result)[:-1]), rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_value_falls_in_every_round_and_the_objective_is_the_least_so_far(seed: int) -> None:
    result = run(small(seed, n=60, labeled=8, gap=0.25).problem, epsilon=1e-3, C=50.0, C_u=50.0)
    assert result.status is Status.CONVERGED
    rounds = rounds_of(result)
    assert len(rounds) > 5
    assert sum(len(points) > 1 for points in rounds) > 1, "there is something to linearise anew"
    for points in rounds:
        assert [point.iteration for point in points] == list(range(len(points)))
        assert all(after.stage_objective <= before.stage_objective * (1 + 1e-9) for before, after in pairwise(points))
    objectives = [point.objective for point in result.trace]
    assert all(after <= before for before, after in pairwise(objectives))
    assert result.objective >= objectives[-1]
    fractions = [point.fraction for point in result.trace]
    assert fractions == sorted(fractions)
    assert 0 <= fractions[0] < fractions[-1] <= 1


@pytest.mark.parametrize("epsilon", [1.0, 0.1, 1e-2, 1e-4])
def test_epsilon_is_what_the_objective_is_certified_to(epsilon: float) -> None:
    result = run(small(3, n=60, labeled=8).problem, epsilon=epsilon)
    assert result.status is Status.CONVERGED
    assert result.objective <= result.trace[-1].stage_objective + epsilon * (1 + 1e-6)


def test_a_violation_below_rounding_is_none() -> None:
    assert run(small(3, n=60, labeled=8).problem, epsilon=1e-12).status is Status.CONVERGED


def test_planes_that_were_dropped_are_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small(4, n=80, labeled=10, gap=0.3).problem
    kept = run(problem, epsilon=1e-3, C=50.0)
    monkeypatch.setattr(planes, "_PATIENCE", 2)
    dropped = run(problem, epsilon=1e-3, C=50.0)
    counts = [dict(points[0].phase.steps)["planes"] for points in rounds_of(dropped)]
    assert counts != list(range(1, len(counts) + 1))
    assert dropped.status is Status.CONVERGED
    assert dropped.objective == pytest.approx(kept.objective, rel=0.02)


def test_planes_multiplied_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = small(4, n=80, d=9, labeled=10, gap=0.3).problem
    whole = run(problem)
    monkeypatch.setattr(planes, "_PRODUCTS", 20)
    np.testing.assert_allclose(weights_of(run(problem)), weights_of(whole), atol=1e-9)


def test_more_planes_than_there_was_room_for() -> None:
    assert (
        len(rounds_of(run(small(0, n=200, d=30, labeled=40, gap=0.1).problem, epsilon=1e-4, C=100.0)))
        > 2 * planes._ROOM
    )


def test_rounds_that_run_out_are_told_and_the_best_point_returned() -> None:
    data = small(5, n=60, labeled=8, gap=0.25)
    short = run(data.problem, max_iterations=2, C=100.0, C_u=100.0)
    assert short.status is Status.ITERATION_LIMIT
    assert short.objective == min(point.objective for point in short.trace if "round" in dict(point.phase.steps))


def test_seeds_decide_the_random_starts_and_restarts_take_the_best() -> None:
    data = small(6, n=60, labeled=4, gap=0.2)

    def objective(seed: int, restarts: int) -> float:
        return run(Problem.of(data.rows, data.y, seed=seed), start="random", restarts=restarts, C_u=50.0).objective

    ones = [objective(seed, 1) for seed in range(8)]
    assert ones == [objective(seed, 1) for seed in range(8)]
    assert len(set(ones)) > 1
    many = [objective(seed, 6) for seed in range(8)]
    assert all(best <= one for best, one in zip(many, ones, strict=True))
    assert np.mean(many) < np.mean(ones)


def test_the_seed_of_a_training_reaches_the_solver() -> None:
    data = small(6, n=60, labeled=4, gap=0.2)
    options = {"start": "random", "C": 8.0, "C_u": 50.0}
    trained = [
        train(TrainingTask(data.rows, data.class_indices, ["a", "b"], "cuts3vm", options, seed=seed)).objective
        for seed in (0, 0, 1, 2, 3)
    ]
    assert trained[0] == trained[1]
    assert len(set(trained)) > 1


def test_moving_all_rows_moves_only_the_intercept() -> None:
    """The centre is taken off wherever the rows lie."""
    data = small(8, n=40, labeled=8)
    far = rows_of(data.X[:, :-1] + 3.0)
    near, moved = run(data.problem, epsilon=1e-4), run(Problem.of(far, data.y), epsilon=1e-4)
    np.testing.assert_allclose(weights_of(moved)[:-1], weights_of(near)[:-1], atol=1e-2)
    np.testing.assert_allclose(moved.unlabeled_scores, near.unlabeled_scores, atol=1e-2)


def test_without_unlabeled_rows_it_is_the_supervised_hinge_svm() -> None:
    data = small(0, n=14, labeled=14)
    X = data.X[:, :-1]
    fraction = float((data.y > 0).mean())
    of = reference.Geometry(X - X.mean(axis=0), data.y, np.full(14, C / 14), 2 * fraction - 1)
    result = run(data.problem, positive_fraction="labeled", epsilon=1e-4)
    assert result.objective == pytest.approx(reference.hinge_svm(of, data.y), abs=2e-4)


def test_from_a_solution_it_ends_at_one_as_good() -> None:
    data = small(9, n=200, d=20, labeled=20, gap=0.3)
    cold = run(data.problem, C=100.0, C_u=100.0)
    options = Cuts3vmOptions.parse(GIVEN | {"C": 100.0, "C_u": 100.0})
    warm = solve("cuts3vm", data.problem, options, init=weights_of(cold))
    assert warm.status is Status.CONVERGED
    assert warm.objective <= cold.objective * 1.01


@pytest.mark.usefixtures("every_report")
def test_a_stop_returns_the_best_point() -> None:
    data = small(3, n=60, labeled=10, gap=0.25)
    whole, every = run(data.problem, epsilon=0.5), Watcher()
    options = Cuts3vmOptions.parse(GIVEN | {"epsilon": 0.5})
    solve("cuts3vm", data.problem, options, observer=every)
    assert len(every.points) > 20
    of, X = reference.geometry(data.X[:, :-1], data.y, C, C_U, 0.4), data.X
    for k in range(1, len(every.points)):  # the last call comes after the end
        watcher = Watcher(k)
        stopped = solve("cuts3vm", data.problem, options, observer=watcher)
        assert stopped.status is Status.CANCELLED
        assert len(watcher.points) == k, "it is not asked again after it said stop"
        if k > 1:  # before the centre is known w = 0 is all there is
            assert stopped.objective == pytest.approx(reference.objective(of, weights_of(stopped)[:-1]), rel=1e-9)
        np.testing.assert_allclose(stopped.unlabeled_scores, X[10:] @ weights_of(stopped), atol=1e-9)
    np.testing.assert_array_equal(weights_of(run(data.problem, epsilon=0.5)), weights_of(whole))


def test_dense_rows_are_as_good_as_sparse_ones() -> None:
    data = small(2, n=40, labeled=8)
    dense = dense_of(data.rows) + 0.5
    assert run(Problem.of(rows_of(dense), data.y)).status is Status.CONVERGED


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_fractions_at_their_ends(value: float) -> None:
    result = run(small(3).problem, positive_fraction=value)
    assert result.status is Status.CONVERGED
    assert result.unlabeled_scores.mean() == pytest.approx(2 * value - 1, abs=1e-9)
