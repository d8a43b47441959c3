"""Input at the edges of sense: an answer that is right there, an error by name, or a remedy that helps."""

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.errors import MessageNames
from core.problem import Status
from core.train import Training, TrainingTask, train
from tests.core.problems import LINEAR, Array, dense_of, labeled, linear, rows_of, small, with_bias
from tests.memory import measured
from tests.reference.mfn import minimise
from tests.reference.transductive import labeled_costs
from tests.there import there

SEMI = [name for name in LINEAR if name != "svm"]
every = pytest.mark.parametrize("name", LINEAR)
semi = pytest.mark.parametrize("name", SEMI)


def run(rows: SparseRows, class_indices: list[int] | NDArray[np.int32], name: str, **options: Any) -> Training:
    """Train on two classes and check the invariants of any input."""
    class_indices = np.array(class_indices, np.int32)
    training = train(TrainingTask(rows, class_indices, ["no", "yes"], name, {"lambda": 1e-2, **options}))
    assert np.isfinite(linear(training).coefficients).all()
    assert np.isfinite(linear(training).intercepts).all()
    assert np.isfinite(training.objective)
    np.testing.assert_array_equal(training.unlabeled, np.flatnonzero(class_indices < 0))
    np.testing.assert_allclose(training.model.scores(rows)[training.unlabeled], training.scores, rtol=1e-6, atol=1e-6)
    return training


def supervised(rows: SparseRows, class_indices: NDArray[np.int32] | list[int], ridge: float = 1e-2) -> Array:
    """Reference scores of all rows by the labeled ones alone."""
    class_indices = np.array(class_indices)
    X, y = with_bias(dense_of(rows)), np.where(class_indices[np.array(class_indices) >= 0] > 0, 1.0, -1.0)
    return np.asarray(X @ minimise(X[class_indices >= 0], *labeled_costs(y, len(y)), ridge))


@pytest.mark.parametrize("name", [*LINEAR, "gradient_tsvm"])
def test_no_unlabeled_rows_gives_the_supervised_model(name: str) -> None:
    data = small(0, n=20, labeled=20)
    options = {"kernel": "linear"} if name == "gradient_tsvm" else {"tolerance": 1e-14}
    training = run(data.rows, data.class_indices, name, **options)
    np.testing.assert_allclose(
        training.model.scores(data.rows)[:, 0], supervised(data.rows, data.class_indices), atol=1e-6
    )
    assert training.scores.shape == (0, 1)
    assert training.status is Status.CONVERGED
    assert len(training.warnings) == (name != "svm")


@every
def test_empty_rows_score_the_intercept(name: str) -> None:
    data = small(1)
    dense = data.X[:, :-1].copy()
    dense[[1, 5, 20, 39]] = 0.0
    training = run(rows_of(dense), data.class_indices, name)
    assert training.status is Status.CONVERGED
    np.testing.assert_allclose(training.model.scores(rows_of(dense))[[1, 5, 20, 39], 0], linear(training).intercepts[0])


@every
@pytest.mark.parametrize("n_features", [3, 2**31 - 1])
def test_all_zero_data_is_decided_by_the_intercept(name: str, n_features: int) -> None:
    rows = SparseRows.empty(10, n_features)
    training = run(rows, [1, 1, 1, 0] + [-1] * 6, name)
    assert linear(training).coefficients.shape == (0, 1)
    assert np.ptp(training.model.scores(rows)) == 0
    other = SparseRows(np.array([0, 2]), np.array([0, n_features - 1], np.uint32), np.ones(2, np.float32), n_features)
    np.testing.assert_array_equal(training.model.scores(other)[0], linear(training).intercepts)
    assert training.model.scores_and_unseen(other)[1] == 2
    if name == "svm":
        np.testing.assert_allclose(
            training.model.scores(rows)[:, 0],
            supervised(rows._replace(n_features=3), [1, 1, 1, 0] + [-1] * 6),
            atol=1e-3,
        )


@every
def test_stored_zeros_are_as_none(name: str) -> None:
    rows = SparseRows(
        np.array([0, 2, 4, 6]), np.array([0, 1] * 3, np.uint32), np.array([1, 0, -1, 0, 2, 0], np.float32), 2
    )
    training = run(rows, [1, 0, -1], name, **({} if name == "svm" else {"positive_fraction": 1.0}))
    np.testing.assert_array_equal(linear(training).coefficients[1], 0)
    assert training.model.labels_of(training.model.scores(rows)).tolist() == [1, 0, 1]


@every
def test_a_feature_in_no_labeled_row(name: str, rng: np.random.Generator) -> None:
    """The supervised model ignores it, the others do not."""
    truth = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)
    dense = np.column_stack([truth * (np.arange(40) < 20), truth * (np.arange(40) >= 4), rng.random(40)])
    known = {} if name == "svm" else {"positive_fraction": 0.5}
    training = run(rows_of(dense), np.where(np.arange(40) < 4, truth > 0, -1).astype(np.int32), name, **known)
    if name == "svm":
        assert linear(training).coefficients[1, 0] == 0
    else:
        assert abs(linear(training).coefficients[1, 0]) > 0.1
    if name == "tsvm":
        np.testing.assert_array_equal(training.model.labels_of(training.scores)[:16], truth[4:20] > 0)


@every
def test_duplicate_rows(name: str) -> None:
    """Three distinct rows, many copies: copies score the same, labeled ones agree with their labels."""
    distinct = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.6, 0.4, 0.2]])
    class_indices = [1, 0] + [-1] * 58
    training = run(rows_of(distinct[np.arange(60) % 3]), class_indices, name)
    scores = training.model.scores(rows_of(distinct[np.arange(60) % 3]))[:, 0].reshape(20, 3)
    np.testing.assert_array_equal(np.ptp(scores, axis=0), 0)
    assert scores[0, 0] > 0 > scores[0, 1]


@every
def test_the_same_row_with_both_labels(name: str) -> None:
    training = run(rows_of(np.tile([[1.0, 2.0]], (6, 1))), [1, 0, -1, -1, -1, -1], name)
    assert abs(training.scores).max() < 1.5


@every
def test_one_label_a_class(name: str) -> None:
    data = small(2, n=30, labeled=2, gap=2.0)
    training = run(data.rows, data.class_indices, name)
    assert training.status is Status.CONVERGED
    np.testing.assert_array_equal(training.model.labels_of(training.model.scores(data.rows))[:2], data.y > 0)
    if name != "da":  # which, with so little to go by, finds another minimum, as its reference does
        assert np.mean((training.scores[:, 0] > 0) == (data.truth[2:] > 0)) > 0.8


@semi
@pytest.mark.parametrize("fraction", [0.0, 1.0])
def test_fractions_at_their_ends_push_all_rows_to_one_side(name: str, fraction: float) -> None:
    data = small(3)
    training = run(data.rows, data.class_indices, name, positive_fraction=fraction, lambda_u=5.0)
    assert training.status is Status.CONVERGED
    middle = run(data.rows, data.class_indices, name, positive_fraction=0.5, lambda_u=5.0)
    share, middling = float((training.scores > 0).mean()), float((middle.scores > 0).mean())
    assert share > 0.9 if fraction else share < 0.1
    assert 0.2 < middling < 0.8


@every
@pytest.mark.parametrize("ridge", [1e-12, 1e6])
def test_extreme_regularisers(name: str, ridge: float) -> None:
    data = small(4, n=30, labeled=6)
    known = {} if name == "svm" else {"positive_fraction": 0.5}
    training = run(data.rows, data.class_indices, name, **{"lambda": ridge}, **known)
    largest = np.abs(linear(training).coefficients).max()
    if ridge > 1:
        assert largest < 1e-5
        assert training.objective == pytest.approx(0.5 if name == "svm" else 1.0, rel=1e-4)
    else:
        # the certificate is relative to an objective near 0: within rounding it may not be had, and then that is said
        assert (training.status is Status.CONVERGED) == (not training.warnings)
        assert training.objective < 1e-9 or name == "da"
        assert largest > 0.1


@every
def test_one_feature(name: str) -> None:
    values = np.array([[2.0], [-2.0], [1.5], [1.2], [-1.7], [-1.1], [0.9], [-0.8]])
    training = run(rows_of(values), [1, 0] + [-1] * 6, name)
    np.testing.assert_array_equal(training.model.labels_of(training.scores), values[2:, 0] > 0)


@every
@pytest.mark.parametrize("value", [3.0, -3.0])
def test_one_unlabeled_row(name: str, value: float) -> None:
    training = run(rows_of([[1.0], [-1.0], [value]]), [1, 0, -1], name)
    assert training.scores.shape == (1, 1)
    if name == "svm":
        assert (training.scores[0, 0] > 0) == (value > 0)


@every
def test_huge_feature_numbers_cost_what_occurs(name: str) -> None:
    """A table of all features would take 16 GB."""
    data = small(5)
    last = np.uint32(2**31 - 1)
    rows = data.rows._replace(indices=last - 5 + data.rows.indices, n_features=2**31)
    run(rows, data.class_indices, name)
    with measured() as memory:
        training = run(rows, data.class_indices, name)
    assert memory.peak < 2e6
    assert training.model.features.tolist() == list(range(2**31 - 6, 2**31))
    same = run(data.rows, data.class_indices, name)
    np.testing.assert_array_equal(training.scores, same.scores)
    assert training.model.nbytes < 1e4


@semi
def test_a_tiny_weight_of_the_unlabeled_rows_is_the_supervised_model(name: str) -> None:
    data = small(6)
    training = run(data.rows, data.class_indices, name, lambda_u=1e-12, tolerance=1e-12)
    assert training.status is Status.CONVERGED
    np.testing.assert_allclose(
        training.model.scores(data.rows)[:, 0], supervised(data.rows, data.class_indices), atol=1e-4
    )


@semi
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_huge_weight_of_the_unlabeled_rows(name: str, seed: int) -> None:
    """Of two clusters so far apart that no solver has another local solution to end in."""
    data = small(seed, gap=6.0)
    fraction = float((data.truth[8:] > 0).mean())
    large, huge = (
        run(data.rows, data.class_indices, name, lambda_u=weight, positive_fraction=fraction) for weight in (10.0, 1e6)
    )
    np.testing.assert_array_equal(large.scores[:, 0] > 0, data.truth[8:] > 0)
    assert (huge.status is Status.CONVERGED) == (not huge.warnings)


@pytest.mark.parametrize("cooling", [1.0001, 1e100, 1.7e308])
def test_any_cooling_that_is_allowed(cooling: float) -> None:
    """With rows that tie, so that entropy stays however low the temperature."""
    rows = rows_of(np.vstack([np.eye(2), np.ones((7, 2))]))
    run(rows, [1, 0] + [-1] * 7, "da", cooling=cooling, positive_fraction=0.5)


@every
@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e6])
def test_values_far_from_one(name: str, scale: float) -> None:
    data = small(8, n=20, labeled=6)
    run(data.rows._replace(values=(data.rows.values * np.float32(scale))), data.class_indices, name)


@every
def test_inputs_are_only_read(name: str) -> None:
    data = small(9)
    for array in (*data.rows[:3], class_indices := data.class_indices):
        array.flags.writeable = False
    options: dict[str, Any] = {"lambda": 1e-2}
    train(TrainingTask(data.rows, class_indices, ("a", "b"), name, options))
    assert options == {"lambda": 1e-2}


@every
def test_rows_of_a_view_are_the_rows(name: str) -> None:
    data = small(10, n=60)
    view = data.rows.between(7, 50)
    class_indices = np.where(np.arange(43) < 10, data.truth[7:50] > 0, -1).astype(np.int32)
    copied = rows_of(data.X[7:50, :-1])
    np.testing.assert_array_equal(run(view, class_indices, name).scores, run(copied, class_indices, name).scores)


@every
def test_labeled_rows_may_be_anywhere(name: str) -> None:
    data = small(11)
    order = np.random.default_rng(0).permutation(40)
    mixed = run(rows_of(data.X[order, :-1]), data.class_indices[order], name, **labeled(name))
    plain = run(data.rows, data.class_indices, name, **labeled(name))
    np.testing.assert_allclose(mixed.model.scores(data.rows), plain.model.scores(data.rows), atol=2e-2)
    assert mixed.objective == pytest.approx(plain.objective, rel=1e-3)


LABELED = {"positive_fraction": "labeled"}
N = 200


def documents() -> tuple[Array, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Dense documents of length 3 or so; three features tell two classes apart."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, N)
    return rng.standard_normal((N, 10)) + 1.2 * (2 * truth[:, None] - 1) * (np.arange(10) < 3), truth


def fit(dense: Array, algorithm: str, options: dict[str, Any], names: MessageNames | None = None) -> Training:
    labels = np.where(np.arange(N) < 40, documents()[1], -1)
    return train(TrainingTask(rows_of(dense), labels, [0, 1], algorithm, options, names=names or MessageNames()))


def error(training: Training) -> float:
    return float(np.mean(training.model.labels_of(training.scores) != documents()[1][40:]))


SCALED: list[tuple[str, dict[str, Any], float]] = [
    ("svm", {}, 1e7),
    ("svm", {}, 1e20),
    ("svm", {}, 1e-7),
    ("tsvm", LABELED, 1e4),
    ("tsvm", LABELED, 1e-4),
    ("da", LABELED, 1e-7),
    ("cuts3vm", LABELED, 1e-7),
    ("kernel_svm", {"kernel": "linear"}, 1e-7),
    ("kernel_svm", {"kernel": "linear"}, 1e20),
    ("kernel_svm", {"gamma": 0.3}, 1e7),
    ("kernel_svm", {"gamma": 0.3}, 1e-7),
    ("ramp_svm", {"kernel": "poly", "gamma": 1.0, "coef0": 1.0}, 1e20),
    ("cccp_tsvm", {"kernel": "linear", **LABELED}, 1e20),
    ("ctsvm", {"kernel": "linear", **LABELED}, 1e20),
    ("ctsvm", {"kernel": "linear", **LABELED}, 1e-4),
]


@pytest.mark.parametrize(("algorithm", "options", "factor"), SCALED, ids=str)
def test_the_factor_that_is_advised_makes_values_of_any_scale_work(
    algorithm: str, options: dict[str, Any], factor: float
) -> None:
    dense = (documents()[0] * factor).astype(np.float32).astype(np.float64)
    training = fit(dense, algorithm, options)
    said = training.range_remedy if training.status is Status.NUMERICAL_ERROR else " ".join(training.warnings)
    found = there(re.search(r"(divide|multiply) all values by (\S+)", said))
    by = float(found[2])
    again = fit(dense / by if found[1] == "divide" else dense * by, algorithm, options)
    assert again.status is Status.CONVERGED
    assert again.warnings == []
    assert error(again) < 0.1


@pytest.mark.parametrize("factor", [1e-20, 1e-7, 1e7, 1e20])
@pytest.mark.parametrize(("algorithm", "options"), [("kernel_svm", {}), ("ctsvm", LABELED), ("auto", LABELED)], ids=str)
def test_what_adapts_to_the_scale_needs_no_advice(algorithm: str, options: dict[str, Any], factor: float) -> None:
    training = fit(documents()[0] * factor, algorithm, options)
    assert training.status is Status.CONVERGED
    assert training.warnings == []
    assert error(training) < 0.1


NAMES = MessageNames(lambda position: f"page {position}", lambda column: f"column {column}")
EVERY: list[tuple[str, dict[str, Any]]] = [
    ("svm", {}),
    ("tsvm", LABELED),
    ("da", LABELED),
    ("cuts3vm", LABELED),
    ("kernel_svm", {}),
    ("ramp_svm", {}),
    ("cccp_tsvm", LABELED),
    ("ctsvm", {"tolerance": 1e-3, **LABELED}),
]


@pytest.mark.parametrize(("algorithm", "options"), EVERY, ids=str)
def test_a_column_of_ids_is_named_and_without_it_all_is_well(algorithm: str, options: dict[str, Any]) -> None:
    dense, _ = documents()
    ids = 4e18 + np.random.default_rng(1).integers(0, 2**56, N)
    training = fit(np.column_stack([dense, ids]), algorithm, options, NAMES)
    largest = int(np.argmax(ids.astype(np.float32)))
    assert np.isfinite(training.scores).all()
    # what the others amount to beside it may be nothing, so that all documents get one class
    assert len([warning for warning in training.warnings if "unlabeled documents get class" not in warning]) == 1
    assert "feature 'column 10' outweighs all others together" in training.warnings[0]
    assert f"(document 'page {largest}')" in training.warnings[0]
    again = fit(dense, algorithm, options)
    assert (again.status, again.warnings) == (Status.CONVERGED, [])
    assert error(again) < 0.1


@pytest.mark.parametrize(("algorithm", "options"), EVERY, ids=str)
def test_the_one_document_of_a_huge_value_is_named(algorithm: str, options: dict[str, Any]) -> None:
    dense, _ = documents()
    dense[150, 4] = 4e18
    training = fit(dense, algorithm, options, NAMES)
    assert np.isfinite(training.scores).all()
    assert len(training.warnings) == 1
    assert "document 'page 150' has values up to 4.0e+18 of feature 'column 4'" in training.warnings[0]
    assert there(training.largest())._asdict() == {
        "document": "page 150",
        "field": "values",
        "detail": "feature 'column 4' has the largest value of all, 4.0e+18",
    }


def test_values_of_a_usual_size_get_the_remedy_of_the_algorithm() -> None:
    training = fit(documents()[0], "kernel_svm", {"kernel": "poly", "degree": 10, "coef0": 1e9})
    assert training.status is Status.NUMERICAL_ERROR
    assert training.range_remedy == "use another kernel, or lower degree, coef0 or C"
    again = fit(documents()[0], "kernel_svm", {"kernel": "poly", "degree": 3, "coef0": 1.0})
    assert again.status is Status.CONVERGED
