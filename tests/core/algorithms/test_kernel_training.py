"""The kernel family through the front door: models that predict like they were trained, classes, cancels, repeats and
odd data.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.svm import SVC

from core.documents.reorder import compact
from core.documents.rows import SparseRows
from core.errors import HalfmoonError, InvalidDocuments, ModelTooLarge
from core.kernels.gamma import resolve_kernel
from core.kernels.gram import Gram
from core.models.io import read_model
from core.options.base import Options
from core.options.kernel import CccpOptions, KernelOptions, RampOptions
from core.problem import Status
from core.train import Training, TrainingContext, TrainingTask, train
from tests.core.problems import Array, dense_of, rows_of, small
from tests.core.tiny_problems import Tiny, tiny

OPTIONS: dict[str, type[Options]] = {"kernel_svm": KernelOptions, "ramp_svm": RampOptions, "cccp_tsvm": CccpOptions}
every = pytest.mark.parametrize("algorithm", OPTIONS)
kernels = pytest.mark.parametrize(
    "kernel",
    [{"kernel": "linear"}, {"gamma": 0.3}, {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.2}],
    ids=["linear", "rbf", "poly"],
)
K = 4


def clusters(seed: int, n: int = 120, density: float = 0.8, width: int = 6) -> tuple[SparseRows, NDArray[np.int32]]:
    """Rows of four classes and class indices, some of them -1; one row is empty."""
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.arange(n) % K)
    dense = (rng.standard_normal((n, width)) * 0.5 + 1.2 * np.eye(K, width)[truth]) * (rng.random((n, width)) < density)
    dense[5] = 0.0
    return rows_of(dense), np.where(rng.random(n) < 0.3, truth, -1).astype(np.int32)


def dense_scores(training: Training, rows: SparseRows) -> Array:
    """Scores from the stored arrays, one kernel value at a time."""
    arrays, meta = training.model.to_arrays()
    dense = dense_of(rows)[:, arrays["features"].astype(np.int64)]
    if meta["family"] == "linear":
        return np.asarray(dense @ arrays["coefficients"] + arrays["intercepts"], np.float64)
    support = dense_of(SparseRows(arrays["indptr"], arrays["indices"], arrays["values"], len(arrays["features"])))
    kernel = meta["kernel"]
    if kernel["name"] == "rbf":
        values = np.exp(-kernel["gamma"] * ((dense[:, None, :] - support[None, :, :]) ** 2).sum(axis=2))
    else:
        values = (kernel["gamma"] * (dense @ support.T) + kernel["coef0"]) ** kernel["degree"]
    return np.asarray(values @ arrays["weights"] + arrays["intercepts"], np.float64)


@every
@kernels
@pytest.mark.parametrize(("density", "width"), [(0.9, 6), (0.02, 200)], ids=["dense", "sparse"])
def test_a_model_predicts_like_it_was_trained(
    algorithm: str, kernel: dict[str, Any], density: float, width: int
) -> None:
    rows, class_indices = clusters(0, density=density, width=width)
    training = train(TrainingTask(rows, class_indices, list("abcd"), algorithm, {"C": 2.0, **kernel}))
    arrays, meta = training.model.to_arrays()
    again = read_model({name: array.copy() for name, array in arrays.items()}, dict(meta))
    scores = again.scores(rows)
    np.testing.assert_array_equal(scores, training.model.scores(rows))
    np.testing.assert_allclose(scores[training.unlabeled], training.scores, atol=1e-4)
    np.testing.assert_allclose(scores, dense_scores(training, rows), atol=1e-4)
    facts = training.model.facts()
    assert facts["family"] == meta["family"] == ("linear" if kernel.get("kernel") == "linear" else "kernel")
    assert facts["bytes"] == sum(array.nbytes for array in arrays.values())
    if facts["family"] == "kernel":
        assert facts["n_support"] == len(arrays["weights"])
        assert np.all(np.any(arrays["weights"] != 0, axis=1)), "no row is kept that no class needs"


@pytest.mark.parametrize("width", [6, 200], ids=["dense", "sparse"])
def test_features_that_training_never_saw_count_as_zero(width: int) -> None:
    rows, class_indices = clusters(1, density=0.9 if width == 6 else 0.02, width=width)
    training = train(TrainingTask(rows, class_indices, list("abcd"), "kernel_svm", {"gamma": 0.3}))
    dense = dense_of(rows)
    unseen = ~np.any(dense != 0, axis=0)
    wider = np.hstack([dense, np.ones((len(dense), 2))])
    wider[:, :width][:, unseen] = 3.0
    scores, count = training.model.scores_and_unseen(rows_of(wider))
    np.testing.assert_allclose(scores, training.model.scores(rows), atol=1e-5)
    assert count == len(dense) * (2 + unseen.sum())


@every
def test_one_vs_rest_with_a_cache_that_holds_little_is_the_same(algorithm: str) -> None:
    rows, class_indices = clusters(3)
    ample, tiny = (
        train(
            TrainingTask(
                rows, class_indices, list("abcd"), algorithm, {"gamma": 0.3, "tolerance": 1e-6, "cache_bytes": size}
            )
        )
        for size in (2**30, 0)
    )
    np.testing.assert_allclose(tiny.scores, ample.scores, atol=1e-3)
    assert tiny.objective == pytest.approx(ample.objective, rel=1e-5)


@pytest.mark.parametrize("options", [{"max_iterations": 1}, {}], ids=["one-round", "to-the-end"])
@every
def test_no_way_out_of_training_passes_the_bound_on_models(algorithm: str, options: dict[str, Any]) -> None:
    rows, class_indices = clusters(5)
    own = {} if algorithm == "kernel_svm" else options
    with pytest.raises(ModelTooLarge):
        train(
            TrainingTask(rows, class_indices, list("abcd"), algorithm, {"gamma": 0.3, **own}),
            TrainingContext(max_model_bytes=100),
        )


@pytest.mark.parametrize("gamma", ["scale", "median"])
@pytest.mark.parametrize("exponent", [-66, -24, 24, 66])
@pytest.mark.parametrize("density", [0.9, 0.05])
@every
def test_gamma_by_a_rule_makes_up_for_the_scale_of_the_values(
    algorithm: str, density: float, exponent: int, gamma: str
) -> None:
    """Values from 1e-20 to 1e20: gamma and the squares of values are beyond float32."""
    rows, class_indices = clusters(5, density=density, width=6 if density > 0.5 else 200)
    options = {"gamma": gamma} | ({"positive_fraction": "labeled"} if algorithm == "cccp_tsvm" else {})
    plain = train(TrainingTask(rows, class_indices, list("abcd"), algorithm, options))
    scaled = rows._replace(values=np.ldexp(rows.values, exponent))
    training = train(TrainingTask(scaled, class_indices, list("abcd"), algorithm, options))
    assert training.status is Status.CONVERGED
    np.testing.assert_allclose(training.scores, plain.scores, atol=1e-5)
    np.testing.assert_allclose(training.model.scores(scaled), plain.model.scores(rows), atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "density"), [("rbf", 0.9), ("rbf", 0.02), ("poly", 0.9), ("poly", 0.02), ("linear", 0.9)]
)
@pytest.mark.parametrize("size", [1e9, 1e19, 3e38])
def test_documents_beyond_float32_score_as_in_exact_numbers(kernel: str, density: float, size: float) -> None:
    """Beside small ones, which score as they do alone; a polynomial of degree 3 of the largest value there is takes 10
    to the 116.
    """
    width = 6 if density > 0.5 else 200
    rows, class_indices = clusters(1, density=density, width=width)
    training = train(
        TrainingTask(
            rows,
            class_indices,
            list("abcd"),
            "kernel_svm",
            {"kernel": kernel, "C": 1.0, **({"gamma": 0.3, "coef0": 1.0} if kernel == "poly" else {"gamma": "scale"})},
        )
    )
    dense = dense_of(rows)[:9].astype(np.float64)
    dense[4] *= size / np.abs(dense[4]).max()
    mixed = rows_of(dense)
    scores = training.model.scores(mixed)
    assert np.isfinite(scores).all()
    expected = dense_scores(training, mixed)
    np.testing.assert_allclose(scores[4], expected[4], rtol=1e-4, atol=1e-4 * np.abs(expected[4]).max())
    small_ones = np.delete(np.arange(9), 4)
    np.testing.assert_allclose(scores[small_ones], training.model.scores(rows)[small_ones], atol=1e-5)


def test_a_document_whose_score_no_number_holds_is_named() -> None:
    rows, class_indices = clusters(1)
    training = train(
        TrainingTask(rows, class_indices, list("abcd"), "kernel_svm", {"kernel": "poly", "degree": 10, "gamma": 0.3})
    )
    dense = np.full((3, 6), 1.0, np.float32)
    dense[1] = 3e38
    with pytest.raises(InvalidDocuments) as caught:
        training.model.scores(rows_of(dense))
    assert [(fault.document, fault.field) for fault in caught.value.faults] == [(1, "values")]


@pytest.mark.parametrize(
    "kernel", [{}, {"gamma": "median"}, {"gamma": 0.3}, {"kernel": "linear"}, {"kernel": "poly", "gamma": 0.3}], ids=str
)
@pytest.mark.parametrize("density", [0.9, 0.05])
@pytest.mark.parametrize("value", [4e18, 1e30])
@pytest.mark.parametrize("algorithm", ["kernel_svm", "ramp_svm"])
def test_an_unlabeled_document_of_huge_values_changes_nothing_for_the_others(
    algorithm: str, value: float, density: float, kernel: dict[str, Any]
) -> None:
    """These two learn from the labeled ones alone, and only score the others; a 64-bit id as a value squares to more
    than float32 holds.
    """
    rows, class_indices = clusters(1, density=density, width=6 if density > 0.5 else 200)
    dense = dense_of(rows).astype(np.float32)
    huge = np.flatnonzero(class_indices < 0)[3]
    plain = train(TrainingTask(rows_of(dense), class_indices, list("abcd"), algorithm, kernel))
    dense[huge, 2] = value
    training = train(TrainingTask(rows_of(dense), class_indices, list("abcd"), algorithm, kernel))
    assert training.status is Status.CONVERGED
    assert np.isfinite(training.scores).all()
    others = training.unlabeled != huge
    # the median is taken of the other documents alone
    atol = 0.02 if kernel.get("gamma") == "median" else 2e-4
    np.testing.assert_allclose(training.scores[others], plain.scores[others], rtol=2e-4, atol=atol)


@pytest.mark.parametrize("algorithm", ["kernel_svm", "ramp_svm"])
def test_an_unlabeled_document_whose_score_no_number_holds_is_no_success(algorithm: str) -> None:
    rows, class_indices = clusters(1)
    dense = dense_of(rows).astype(np.float32)
    dense[np.flatnonzero(class_indices < 0)[0]] = 3e38
    training = train(
        TrainingTask(
            rows_of(dense), class_indices, list("abcd"), algorithm, {"kernel": "poly", "degree": 10, "gamma": 0.3}
        )
    )
    assert training.status is Status.NUMERICAL_ERROR


@pytest.mark.parametrize("kernel", [{}, {"gamma": "median"}, {"gamma": 0.3}], ids=str)
@pytest.mark.parametrize("density", [0.9, 0.05])
@pytest.mark.parametrize("algorithm", ["cccp_tsvm", "ctsvm"])
def test_a_transductive_algorithm_bears_an_unlabeled_document_of_huge_values(
    algorithm: str, density: float, kernel: dict[str, Any]
) -> None:
    """It is infinitely far from all others in an RBF kernel, and counts neither for gamma nor for the mean."""
    rows, class_indices = clusters(1, density=density, width=6 if density > 0.5 else 200)
    dense = dense_of(rows).astype(np.float32)
    huge = np.flatnonzero(class_indices < 0)[3]
    options = (
        {"C": 1.0, "gamma": "scale", "positive_fraction": "labeled"}
        | kernel
        | ({} if algorithm == "cccp_tsvm" else {"tolerance": 1e-3})
    )
    plain = train(TrainingTask(rows_of(dense), class_indices, list("abcd"), algorithm, options))
    dense[huge, 2] = 4e18
    training = train(TrainingTask(rows_of(dense), class_indices, list("abcd"), algorithm, options))
    assert training.status is Status.CONVERGED
    assert np.isfinite(training.scores).all()
    others = training.unlabeled != huge
    same = training.model.labels_of(training.scores)[others] == plain.model.labels_of(plain.scores)[others]
    assert same.mean() > 0.9


@pytest.mark.parametrize("density", [1.0, 0.2])
def test_gamma_by_scale_is_that_of_scikit_learn(density: float, rng: np.random.Generator) -> None:
    dense = rng.standard_normal((80, 5)) * (rng.random((80, 5)) < density)
    dense[:, 0] += 1.0
    y = np.where(dense @ rng.standard_normal(5) > 0, 1, 0)
    fitted = SVC(C=2.0, gamma="scale", tol=1e-7).fit(dense, y)
    training = train(
        TrainingTask(
            rows_of(dense),
            y.astype(np.int32),
            ["a", "b"],
            "kernel_svm",
            {"C": 2.0, "gamma": "scale", "tolerance": 1e-7},
        )
    )
    np.testing.assert_allclose(training.model.scores(rows_of(dense))[:, 0], fitted.decision_function(dense), atol=2e-3)


def test_gamma_by_the_median_is_that_of_all_pairs() -> None:
    data = small(3, n=60, labeled=20)
    X = data.X[:, :-1]
    distances = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))[np.triu_indices(60, 1)]
    training = train(TrainingTask(data.rows, data.class_indices, ["a", "b"], "cccp_tsvm", {"gamma": "median"}))
    assert training.model.to_arrays()[1]["kernel"]["gamma"] == pytest.approx(
        1 / (2 * np.median(distances) ** 2), rel=0.1
    )


NUMBER = st.floats(1e-12, 1e9) | st.sampled_from([1e-12, 1e-3, 1.0, 1e9, 5e-324])
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "C": NUMBER,
    "kernel": st.sampled_from(["linear", "rbf", "poly"]),
    "gamma": st.sampled_from(["scale", "median"]) | NUMBER,
    "degree": st.integers(1, 4),
    "coef0": st.floats(0, 10),
    "tolerance": st.floats(1e-6, 1),
    "cache_bytes": st.integers(0, 2000),
}
OWN: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "kernel_svm": {},
    "ramp_svm": {"s": st.floats(-3, 0.9), "start": st.sampled_from(["zero", "subset"])},
    "cccp_tsvm": {"s": st.floats(-0.99, 0), "C_u": st.none() | st.floats(0, 1e6), "positive_fraction": st.floats(0, 1)},
}
FUZZED = {algorithm: st.fixed_dictionaries({}, optional=COMMON | own) for algorithm, own in OWN.items()}


@settings(
    max_examples=200,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(tiny(FUZZED))
def test_finite_results_or_a_named_error(problem: Tiny) -> None:
    rows, class_indices = rows_of(np.array(problem.dense)), np.array(problem.class_indices, np.int32)
    try:
        training = train(TrainingTask(rows, class_indices, ["a", "b", "c"], problem.algorithm, problem.options))
    except HalfmoonError:
        n_classes = len(set(problem.class_indices) - {-1})
        extreme = [problem.options.get(name) for name in ("C", "gamma")]
        assert (
            n_classes < 2
            or "positive_fraction" in problem.options
            or any(isinstance(value, float) and value < 1e-12 for value in extreme)
        )
        return
    if training.status is Status.NUMERICAL_ERROR:
        options, documents = (
            OPTIONS[problem.algorithm].parse(problem.options),
            compact(rows, np.arange(rows.n_rows), lambda: None).rows,
        )
        assert isinstance(options, KernelOptions)
        assert not Gram(
            documents, resolve_kernel(options.kernel, options.gamma, options.degree, options.coef0, documents)
        ).fits_float32
        return
    assert np.isfinite(training.scores).all()
    assert np.isfinite(training.model.scores(rows)).all()
    assert np.isfinite(training.objective)
    assert training.status in (Status.CONVERGED, Status.ITERATION_LIMIT)
