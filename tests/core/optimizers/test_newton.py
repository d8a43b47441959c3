"""The supervised L2-SVM: the reference, optimality conditions, scikit-learn; its parts against direct solves and sorted
break points.
"""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from core.engine.requests import Phase, Product, Report
from core.engine.runner import Scheduler
from core.errors import InvalidDocuments
from core.losses.squared_hinge import SquaredHinge
from core.optimizers.newton import Ending, Iterate, Step, StoppingRule, conjugate_gradients, minimise, step_length
from core.options.linear import SvmOptions
from core.problem import Problem, Status
from tests.core.problems import (
    Array,
    Small,
    as_steps,
    dense_of,
    normal,
    random_rows,
    rows_of,
    small,
    solve,
    weights_of,
    with_bias,
)
from tests.reference import mfn
from tests.reference.transductive import labeled_costs

TIGHT = 1e-17


def labeled_only(seed: int, n: int = 40, d: int = 6) -> Small:
    data = small(seed, n, d, labeled=n)
    assert len(data.y) == data.rows.n_rows
    return data


@pytest.mark.parametrize("ridge", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_reference(seed: int, ridge: float) -> None:
    data = labeled_only(seed)
    costs = labeled_costs(data.y, len(data.y))
    w = mfn.minimise(data.X, *costs, ridge)
    result = solve("svm", data.problem, SvmOptions(lambda_=ridge, tolerance=TIGHT))
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(weights_of(result), w, rtol=1e-8, atol=1e-8 * np.abs(w).max())
    assert result.objective == pytest.approx(mfn.objective(data.X, *costs, ridge, w), rel=1e-8)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-10])
def test_converged_is_a_certificate(tolerance: float) -> None:
    """The gradient, computed anew, bounds the distance to the minimum; and the minimum is no further."""
    for seed in range(4):
        data = labeled_only(seed, 120, 15)
        costs = labeled_costs(data.y, len(data.y))
        result = solve("svm", data.problem, SvmOptions(lambda_=1e-3, tolerance=tolerance))
        w = weights_of(result)
        objective = mfn.objective(data.X, *costs, 1e-3, w)
        assert result.objective == pytest.approx(objective, rel=1e-12)
        assert np.sum(mfn.gradient(data.X, *costs, 1e-3, w) ** 2) / 2e-3 <= tolerance * objective * (1 + 1e-6)
        best = mfn.objective(data.X, *costs, 1e-3, mfn.minimise(data.X, *costs, 1e-3))
        assert best * (1 - 1e-12) <= objective <= best / (1 - tolerance) * (1 + 1e-12)


@pytest.mark.parametrize("ridge", [1e-3, 1e-1])
def test_scikit_learn_minimises_the_same(ridge: float) -> None:
    data = labeled_only(7, 200, 12)
    result = solve("svm", data.problem, SvmOptions(lambda_=ridge, tolerance=TIGHT))
    other = LinearSVC(
        loss="squared_hinge", dual=False, fit_intercept=False, C=1 / (2 * 200 * ridge), tol=1e-12, max_iter=10_000
    )
    other.fit(data.X, data.y)
    np.testing.assert_allclose(weights_of(result), other.coef_[0], atol=1e-6)


def test_unlabeled_rows_are_scored_and_change_nothing() -> None:
    data = small(3, n=50, labeled=12)
    alone = Problem.of(data.rows.between(0, 12), data.y)
    result, supervised = (solve("svm", problem, SvmOptions()) for problem in (data.problem, alone))
    np.testing.assert_allclose(weights_of(result), weights_of(supervised), rtol=1e-12)
    np.testing.assert_allclose(result.unlabeled_scores, data.X[12:] @ weights_of(result), rtol=1e-10)
    assert supervised.unlabeled_scores.shape == (0,)


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4])
def test_it_ends_at_the_same_point_from_anywhere(scale: float) -> None:
    data = small(4, n=60, labeled=40)
    start = normal(np.random.default_rng(0), data.X.shape[1]) * scale
    before = start.copy()
    options = SvmOptions(tolerance=TIGHT)
    cold, warm = solve("svm", data.problem, options), solve("svm", data.problem, options, init=start)
    np.testing.assert_allclose(weights_of(warm), weights_of(cold), rtol=1e-8)
    np.testing.assert_allclose(warm.unlabeled_scores, data.X[40:] @ weights_of(cold), rtol=1e-7)
    np.testing.assert_array_equal(start, before)


def test_starting_at_the_solution_takes_no_newton_step() -> None:
    data = labeled_only(5)
    solution = solve("svm", data.problem, SvmOptions(tolerance=1e-10))
    again = solve("svm", data.problem, SvmOptions(), init=weights_of(solution))
    assert [point.iteration for point in again.trace] == [0]


def test_the_iteration_limit_is_told() -> None:
    result = solve("svm", labeled_only(6).problem, SvmOptions(lambda_=1e-6, tolerance=1e-15, max_iterations=1))
    assert result.status is Status.ITERATION_LIMIT
    assert [point.iteration for point in result.trace] == [0, 1]


def test_the_objective_falls_at_every_newton_step() -> None:
    for seed in range(5):
        values = [
            point.stage_objective
            for point in solve("svm", labeled_only(seed, 100, 20).problem, SvmOptions(lambda_=1e-5)).trace
        ]
        assert len(values) > 2
        assert all(after < before for before, after in pairwise(values))


def two_sided(seed: int, ridge: float, start: Array) -> tuple[Iterate, Ending, Array, SquaredHinge]:
    """The iterate after ``minimise`` under random costs on both sides, half of them equal."""
    rows, rng = random_rows(np.random.default_rng(seed), 50, 8, 0.6), np.random.default_rng(seed + 100)
    positive, negative = rng.random(50) / 50, rng.random(50) / 50 * (rng.random(50) < 0.8)
    positive[:25] = negative[:25]
    costs, X = SquaredHinge(positive, negative), with_bias(dense_of(rows))
    iterate = Iterate(start.copy(), X @ start, np.zeros(50), np.zeros(9))

    steps = minimise(iterate, costs, ridge, StoppingRule(TIGHT), Report(Phase(), 0, np.nan, np.nan, 0.0))
    endings: list[Ending] = []
    with Scheduler(rows) as scheduler:
        scheduler.run({Phase(): lambda: as_steps(steps, endings)})
    return iterate, endings[0], X, costs


@pytest.mark.parametrize("scale", [0, 3, 100])
@pytest.mark.parametrize("seed", range(5))
def test_two_sided_costs_as_annealing_has_them(seed: int, scale: float) -> None:
    """Table 7 is Table 1 over rows given twice. From afar, rows jump over their whole margin."""
    iterate, ending, X, costs = two_sided(seed, 1e-3, scale * np.random.default_rng(seed).standard_normal(9))
    assert ending.status is Status.CONVERGED
    np.testing.assert_allclose(iterate.coefficients, mfn.minimise(X, *costs, 1e-3), atol=1e-7)
    charged = costs.positive + costs.negative > 0
    np.testing.assert_allclose(iterate.scores[charged], (X @ iterate.coefficients)[charged], atol=1e-9)
    gradient = mfn.gradient(X, *costs, 1e-3, iterate.coefficients)
    np.testing.assert_allclose(iterate.gradient + 1e-3 * iterate.coefficients, gradient, atol=1e-11)


def newton_step(seed: int, residual: float, most: int) -> tuple[Step, Array, Array, Array]:
    rows, rng = random_rows(np.random.default_rng(seed), 40, 7, 0.6), np.random.default_rng(seed)
    curvatures, target = rng.random(40) * (rng.random(40) < 0.6), rng.standard_normal(8)
    steps: list[Step] = []
    with Scheduler(rows) as scheduler:
        scheduler.run({Phase(): lambda: as_steps(conjugate_gradients(curvatures, target, 0.01, residual, most), steps)})
    return steps[0], with_bias(dense_of(rows)), curvatures, target


@pytest.mark.parametrize("seed", range(3))
def test_conjugate_gradients_solve_the_newton_system(seed: int) -> None:
    step, X, H, b = newton_step(seed, 1e-13, 1000)
    np.testing.assert_allclose(
        step.coefficients, np.linalg.solve(0.01 * np.eye(8) + X.T @ (H[:, None] * X), b), rtol=1e-9
    )
    np.testing.assert_allclose(step.scores, np.where(H > 0, X @ step.coefficients, 0), atol=1e-9)
    np.testing.assert_allclose(step.image, X.T @ (H * (X @ step.coefficients)), atol=1e-9)


@pytest.mark.parametrize("most", [1, 2, 4])
def test_conjugate_gradients_that_stop_early_go_down(most: int) -> None:
    step, X, H, b = newton_step(1, 1e-13, most)
    assert step.iterations == most
    assert b @ step.coefficients > 0
    np.testing.assert_allclose(step.image, X.T @ (H * (X @ step.coefficients)), atol=1e-9)


def test_conjugate_gradients_stop_at_the_residual_asked_for() -> None:
    step, X, H, b = newton_step(2, 0.2, 1000)
    assert 1 <= step.iterations < 8
    assert np.linalg.norm(b - 0.01 * step.coefficients - X.T @ (H * (X @ step.coefficients))) <= 0.2 * np.linalg.norm(b)


@pytest.mark.parametrize("exponent", [19, 25, 30])
def test_values_whose_squares_leave_no_digit_to_the_regulariser_fail_no_solve(exponent: int) -> None:
    rng, huge = np.random.default_rng(0), 10.0**exponent
    for _ in range(40):
        rows = rows_of(rng.standard_normal(rng.integers(2, 10, 2)) * huge)
        result = solve("svm", Problem.of(rows, np.array([1.0, -1.0])), SvmOptions(max_iterations=10))
        assert result.status in (Status.ITERATION_LIMIT, Status.CONVERGED)
        assert np.isfinite(weights_of(result)).all()


@pytest.mark.parametrize("image", [-0.5, -1.0, np.nan])
def test_a_direction_without_curvature_ends_a_solve(image: float) -> None:
    iterate, costs = Iterate.zero(2, 1), SquaredHinge(np.ones(2), np.zeros(2))
    iterate.slopes[:], iterate.gradient[:] = -1.0, [1.0, 2.0]
    solving = minimise(iterate, costs, 0.5, StoppingRule(1e-9), Report(Phase("mfn"), 0, 0.0, None, 0.0))
    assert isinstance(next(solving), Report)
    product = solving.send(None)
    assert isinstance(product, Product)
    with pytest.raises(StopIteration) as end:
        solving.send(image * product.vector)
    assert end.value.value == Ending(1.0, Status.NUMERICAL_ERROR, 0)
    assert not iterate.coefficients.any()


@pytest.mark.parametrize("seed", range(40))
def test_the_step_length_is_the_sorted_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, ridge = 30, 10.0 ** rng.integers(-8, 3)
    costs = SquaredHinge(rng.random(n) * (rng.random(n) < 0.7), rng.random(n) * (rng.random(n) < 0.7))
    scores, direction = rng.standard_normal(n) * 2, rng.standard_normal(n) * 10.0 ** rng.integers(-4, 3)
    w, s = rng.standard_normal(3), rng.standard_normal(3)
    Y, C, o, d = np.repeat([1.0, -1.0], n), np.concatenate(costs), np.tile(scores, 2), np.tile(direction, 2)
    if ridge * w @ s + np.sum((C * (o - Y) * d)[Y * o < 1]) > 0:
        s, d, direction = -s, -d, -direction
    length = step_length(scores, direction, costs, ridge * float(w @ s), ridge * float(s @ s))
    assert length == pytest.approx(mfn.sorted_line_search(w, w + s, o, o + d, Y, C, ridge), rel=1e-9)


@pytest.mark.parametrize(
    ("y", "costs"),
    [
        pytest.param([], None, id="no-labels"),
        pytest.param([1, 0], None, id="label-0"),
        pytest.param([1] * 9, None, id="too-many-labels"),
        pytest.param([1, -1], [1.0] * 7, id="a-cost-missing"),
        pytest.param([1, -1], [1.0] * 7 + [0.0], id="cost-0"),
        pytest.param([1, -1], [1.0] * 7 + [np.inf], id="infinite-cost"),
    ],
)
def test_what_is_no_problem_is_refused(y: list[float], costs: list[float] | None) -> None:
    rows = random_rows(np.random.default_rng(0), 8, 3)
    with pytest.raises(InvalidDocuments):
        Problem.of(rows, np.array(y), None if costs is None else np.array(costs))
