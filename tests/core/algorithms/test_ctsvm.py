"""The convex relaxation against a general solver, against the problem that it relaxes, and through the front door."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from core.errors import InvalidOption
from core.losses.relaxation import Relaxation
from core.numerics.blocked_lapack import Matrix
from core.optimizers.interior_point import Interior, Residuals
from core.options.relaxation import CtsvmOptions
from core.problem import Expansion, Problem, Result, Status
from core.registry import check_options
from core.train import TrainingTask, train
from tests.core.problems import Array, normal, rows_of, small, solve
from tests.reference.relaxation import Given, best_labeling, dual_value, soft_optimum

HARD = np.inf
BALANCED = 0.1


@pytest.fixture(autouse=True)
def one_thread_of_blas() -> Iterator[None]:
    """As in a training: the threads of NumPy and of SciPy would wait for each other's cores."""
    with threadpool_limits(1, "blas"):
        yield


def kernel_matrix(name: str, X: Array) -> Matrix:
    if name == "linear":
        return np.asarray(X @ X.T)
    return np.asarray(np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(axis=2)))


def random_given(
    seed: int, n: int, n_labeled: int, kernel: str, caps: float, epsilon: float | None = BALANCED, bias: float = 1.0
) -> Given:
    rng = np.random.default_rng(seed)
    truth = np.where(np.arange(n) % 2, 1.0, -1.0)
    X = normal(rng, n * 3).reshape(n, 3) + 0.8 * truth[:, None]
    K = kernel_matrix(kernel, X)
    K += 1e-3 * float(np.mean(np.diag(K))) * np.eye(n)
    return Given(K, truth[:n_labeled], np.full(n, caps), epsilon, bias)


class Solved(NamedTuple):
    interior: Interior
    residuals: Residuals


def relaxed(problem: Given, tolerance: float = 1e-7, steps: int = 60) -> Solved:
    interior = Interior(
        Relaxation(
            problem.G.copy(),
            problem.y,
            problem.caps,
            None if problem.epsilon is None else problem.c,
            problem.epsilon or 1.0,
        )
    )
    for _ in interior.initialise():
        pass
    for _ in range(steps):
        residuals = interior.residuals()
        if residuals.feasible and residuals.primal - residuals.dual <= tolerance * residuals.dual:
            return Solved(interior, residuals)
        for _ in interior.step(residuals.complementarity):
            pass
    raise AssertionError(f"no convergence: {residuals}")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("caps", [0.3, 3.0, HARD])
@pytest.mark.parametrize(("n", "n_labeled"), [(10, 3), (25, 6), (40, 4)])
def test_the_value_is_that_of_a_general_solver(kernel: str, caps: float, n: int, n_labeled: int) -> None:
    problem = random_given(n, n, n_labeled, kernel, caps)
    residuals = relaxed(problem).residuals
    assert residuals.dual == pytest.approx(dual_value(problem), rel=1e-5)
    assert residuals.dual <= residuals.primal * (1 + 1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("caps", [0.01, 1.0])
def test_the_steps_stay_long_up_to_the_ninth_digit(kernel: str, caps: float) -> None:
    """With ``X ΔS S⁻¹`` multiplied from the left, rounding blocked X: three of these four ended after 50 to 70 steps,
    short of this tolerance.
    """
    residuals = relaxed(random_given(0, 100, 10, kernel, caps, epsilon=0.01), tolerance=1e-9, steps=30).residuals
    assert -1e-9 * residuals.dual <= residuals.primal - residuals.dual <= 1e-9 * residuals.dual


@pytest.mark.parametrize(("epsilon", "bias"), [(None, 1.0), (0.5, 0.0), (None, 0.0), (1e-6, 1.0), (BALANCED, 10.0)])
def test_the_value_without_balance_or_bias(epsilon: float | None, bias: float) -> None:
    problem = random_given(1, 20, 4, "rbf", 2.0, epsilon, bias)
    assert relaxed(problem).residuals.dual == pytest.approx(dual_value(problem), rel=1e-5)


def test_caps_may_differ_and_only_some_be_hard() -> None:
    problem = random_given(2, 20, 4, "rbf", 1.0)
    mixed = problem._replace(caps=np.where(problem.labeled, HARD, 0.5 + np.arange(20) / 20))
    assert relaxed(mixed).residuals.dual == pytest.approx(dual_value(mixed), rel=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("caps", [0.5, 5.0, HARD])
@pytest.mark.parametrize("unlabeled", [3, 8])
def test_the_relaxation_never_exceeds_the_best_labeling(kernel: str, caps: float, unlabeled: int) -> None:
    problem = random_given(unlabeled, unlabeled + 3, 3, kernel, caps)
    assert relaxed(problem).residuals.dual <= best_labeling(problem) * (1 + 1e-6)


@pytest.mark.slow
def test_the_relaxation_never_exceeds_the_best_labeling_of_twelve() -> None:
    problem = random_given(7, 15, 3, "rbf", HARD)
    assert relaxed(problem).residuals.dual <= best_labeling(problem) * (1 + 1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_relaxation_never_exceeds_the_soft_optimum(kernel: str) -> None:
    problem = random_given(8, 8, 3, kernel, 1.0)
    small_caps = problem._replace(caps=np.full(8, 0.9 / float(np.linalg.eigvalsh(problem.G).max())))
    value, optimum = relaxed(small_caps).residuals.dual, soft_optimum(small_caps)
    assert optimum * 0.5 < value <= optimum * (1 + 1e-6)


def test_without_unlabeled_rows_nothing_is_relaxed() -> None:
    problem = random_given(3, 8, 8, "rbf", 2.0, epsilon=None)
    assert relaxed(problem).residuals.dual == pytest.approx(best_labeling(problem), rel=1e-6)


def test_the_scores_are_those_of_the_stationary_point() -> None:
    """(8):
    M z = ½ (γ∘a − (α − β) c), with M from an explicit inverse; it is nearly singular, so that it is not inverted here.
    """
    problem = random_given(4, 20, 5, "rbf", 3.0)
    interior = relaxed(problem, 1e-9).interior
    x = interior.variables.x
    M = np.linalg.inv(problem.G) - np.diag(np.where(problem.labeled, 0.0, x[:20]))
    v = np.concatenate([problem.y, np.zeros(15)]) * x[:20] - (x[20] - x[21]) * problem.c
    np.testing.assert_allclose(M @ interior.scores(), 0.5 * v, atol=1e-5)
    assert np.abs(v).max() > 1e-2
    np.testing.assert_allclose(problem.G @ interior.weights(), interior.scores(), atol=1e-8)


def test_without_balance_and_bias_the_scores_propagate_labels() -> None:
    """(11), Remark II: (I − Σ_j γ_j K E_jj) z = Σ_i ½ γ_i y_i K(x_i, ·)."""
    problem = random_given(5, 20, 5, "rbf", 3.0, epsilon=None, bias=0.0)
    interior = relaxed(problem, 1e-9).interior
    gamma = interior.variables.x[:20]
    spread = np.eye(20) - problem.K * np.where(problem.labeled, 0.0, gamma)
    sent = 0.5 * problem.K[:, :5] @ (gamma[:5] * problem.y)
    np.testing.assert_allclose(spread @ interior.scores(), sent, atol=1e-5)
    assert np.abs(sent).max() > 1e-2


def test_the_certificate_keeps_every_constraint() -> None:
    problem = random_given(6, 30, 6, "rbf", 3.0)
    interior = relaxed(problem).interior
    X, z = interior.variables.X, interior.scores()
    xi = interior.variables.xi[:30]
    assert np.linalg.eigvalsh(X).min() > 0
    assert X[30, 30] == pytest.approx(1.0, abs=1e-8)
    assert (problem.y * z[:6] >= 1 - xi[:6] - 1e-8).all()
    assert (np.diag(X)[6:30] >= 1 - xi[6:] - 1e-8).all()
    assert abs(problem.c @ z) <= BALANCED + 1e-8
    assert (xi >= 0).all()


def solved(problem: Problem, **options: Any) -> Result:
    return solve("ctsvm", problem, CtsvmOptions(**options))


def test_the_gap_closes_and_the_trace_tells() -> None:
    result = solved(small(3, n=60, labeled=10).problem, tolerance=1e-6)
    gaps = [point.stage_objective for point in result.trace if str(point.phase) == "ctsvm"]
    bounds = [point.objective for point in result.trace]
    assert result.status is Status.CONVERGED
    assert gaps[-1] <= 1e-6 * result.objective
    assert all(later <= earlier for earlier, later in pairwise(gaps))
    assert all(later >= earlier for earlier, later in pairwise(bounds))
    assert result.objective == bounds[-1]


@pytest.mark.parametrize(
    "options",
    [{}, {"kernel": "linear"}, {"kernel": "poly", "degree": 2}, {"hard_margin": True}, {"bias": 0.0, "epsilon": None}],
)
def test_the_model_gives_the_scores_less_the_regularisation(options: dict[str, Any]) -> None:
    """z = f + r a: the ridge on the diagonal adds r a to a row's own score."""
    data = small(1, n=50, labeled=8)
    options = {"C": 1.0, "gamma": "scale", **options}
    result = solved(data.problem, **options)
    training = train(
        TrainingTask(data.rows, data.class_indices, ["a", "b"], "ctsvm", {"positive_fraction": "labeled", **options})
    )
    np.testing.assert_allclose(training.scores[:, 0], result.unlabeled_scores)
    assert isinstance(result.decision, Expansion)
    weights = np.zeros(50)
    weights[result.decision.rows] = result.decision.weights
    scores = training.model.scores(data.rows)[:, 0]
    diagonal = result.decision.kernel.diagonal(np.einsum("ij,ij->i", data.X[:, :-1], data.X[:, :-1]))
    np.testing.assert_allclose(
        result.unlabeled_scores, (scores + 1e-3 * diagonal.mean() * weights)[8:], atol=1e-3 * np.abs(scores).max()
    )


def test_new_documents_fall_on_the_side_of_their_cluster(rng: np.random.Generator) -> None:
    truth = np.where(rng.random(160) < 0.5, 1.0, -1.0)
    truth[:2] = [1.0, -1.0]
    dense = normal(rng, 320).reshape(160, 2) * 0.5 + 2.0 * truth[:, None]
    class_indices = np.full(80, -1, np.int32)
    class_indices[:2] = [1, 0]
    training = train(
        TrainingTask(rows_of(dense[:80]), class_indices, ["no", "yes"], "ctsvm", {"kernel": "rbf", "gamma": 0.5})
    )
    assert ((training.model.scores(rows_of(dense[80:]))[:, 0] > 0) == (truth[80:] > 0)).all()


def test_three_classes() -> None:
    rng = np.random.default_rng(1)
    class_indices = np.arange(60, dtype=np.int32) % 3
    dense = normal(rng, 120).reshape(60, 2) * 0.3 + np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 3.0]])[class_indices]
    known = np.where(np.arange(60) < 6, class_indices, -1).astype(np.int32)
    training = train(TrainingTask(rows_of(dense), known, ["a", "b", "c"], "ctsvm", {"gamma": 1.0}))
    assert (training.model.labels_of(training.scores) == class_indices[6:]).all()
    assert {point.phase.label for point in training.trace} == {"a", "b", "c"}


def test_balance_moves_the_mean_of_the_unlabeled() -> None:
    data = small(2, n=50, labeled=8)
    means = [
        float(solved(data.problem, positive_fraction=fraction, epsilon=0.01).unlabeled_scores.mean())
        for fraction in (0.1, 0.5, 0.9)
    ]
    assert means[0] < means[1] < means[2]


def test_the_iteration_limit_is_told() -> None:
    result = solved(small(6).problem, max_iterations=3)
    assert result.status is Status.ITERATION_LIMIT
    assert np.isfinite(result.unlabeled_scores).all()


def test_too_many_documents_are_refused_at_once() -> None:
    with pytest.raises(InvalidOption, match=r"5,000 documents.*3,000.*3,300 MB.*tsvm, da") as caught:
        check_options("ctsvm", {}, ["a", "b"], 5000)
    assert caught.value.field == "max_documents"
    assert check_options("ctsvm", {"max_documents": 5000}, ["a", "b"], 5000)
    with pytest.raises(InvalidOption):
        train(TrainingTask(small(0).rows, small(0).class_indices, ["a", "b"], "ctsvm", {"max_documents": 39}))


@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_a_bias_that_leaves_nothing_of_the_kernel_is_refused_by_name(C: float) -> None:
    dense = np.array([[0.0, 1e-3, 1e-3]] * 3)
    options = {"kernel": "linear", "regularisation": 1e-6, "C": C, "positive_fraction": 0.5}
    class_indices = np.array([-1, 0, 1], np.int32)
    with pytest.raises(
        InvalidOption, match=r"1000 is too large beside kernel values of 2e-06 and a regularisation of 1e-06"
    ) as caught:
        train(TrainingTask(rows_of(dense), class_indices, ["a", "b"], "ctsvm", options | {"bias": 1e3}))
    assert caught.value.field == "bias"
    assert (
        train(TrainingTask(rows_of(dense), class_indices, ["a", "b"], "ctsvm", options | {"bias": 1.0})).status
        is Status.CONVERGED
    )
    assert (
        train(TrainingTask(rows_of(1e3 * dense), class_indices, ["a", "b"], "ctsvm", options | {"bias": 1e3})).status
        is Status.CONVERGED
    )


def test_a_regularisation_within_the_rounding_of_the_kernel_is_refused_by_name() -> None:
    """Kernel values are kept in single precision: the matrix of many like documents has negative eigenvalues beyond
    -2e-6.
    """
    rows = rows_of(normal(np.random.default_rng(0), 1800).reshape(900, 2))
    class_indices = np.array([0, 1] * 5 + [-1] * 890, np.int32)
    options = {"kernel": "rbf", "gamma": 0.1, "positive_fraction": 0.5, "max_iterations": 1}
    with pytest.raises(InvalidOption, match=r"1e-06 is too small.*no inverse.*raise it") as caught:
        train(TrainingTask(rows, class_indices, ["a", "b"], "ctsvm", options | {"regularisation": 1e-6}))
    assert caught.value.field == "regularisation"
    assert (
        train(TrainingTask(rows, class_indices, ["a", "b"], "ctsvm", options | {"regularisation": 1e-5})).status
        is Status.ITERATION_LIMIT
    )


WEIGHT = st.sampled_from([1e-12, 1e-3, 1.0, 1e3, 1e9])


@settings(
    max_examples=60,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.0, 1.0, -1.0, 1e-3, 100.0]), min_size=2, max_size=2), min_size=3, max_size=7
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "C": WEIGHT,
            "C_u": WEIGHT,
            "hard_margin": st.booleans(),
            "epsilon": st.sampled_from([None, 1e-6, 0.1, 1e6]),
            "bias": st.sampled_from([0.0, 1.0, 1e3]),
            "regularisation": st.sampled_from([1e-6, 1e-3, 1e6]),
            "kernel": st.sampled_from(["linear", "rbf", "poly"]),
            "positive_fraction": st.floats(0, 1),
        },
    ),
)
def test_random_tiny_problems_end_finite_and_told(dense: list[list[float]], options: dict[str, Any]) -> None:
    class_indices = np.array([0, 1, *[-1] * (len(dense) - 2)], np.int32)
    try:
        training = train(TrainingTask(rows_of(np.array(dense)), class_indices, ["a", "b"], "ctsvm", options))
    except InvalidOption:
        assert options["bias"] == 1e3
        assert np.abs(dense).max() < 1, "only beside such kernel values is it too large"
        return
    assert training.status in (Status.CONVERGED, Status.ITERATION_LIMIT)
    assert np.isfinite(training.scores).all()
    assert np.isfinite(training.objective)
