"""A training's warnings of values that do not suit it, and that following them helps."""

import re
from typing import Any

import numpy as np
import pytest

from core.errors import MessageNames
from core.problem import Status
from core.train import Training, TrainingTask, train
from tests.core.problems import Array, rows_of
from tests.there import there

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
