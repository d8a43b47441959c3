"""Training that starts from a model."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.train import Training, TrainingTask, train

N_FEATURES = 300


def documents(seed: int, n_rows: int = 240, n_classes: int = 2) -> tuple[SparseRows, NDArray[np.int32]]:
    """Overlapping topics, every document of ten features, and the class of each."""
    rng = np.random.default_rng(seed)
    classes = np.arange(n_rows, dtype=np.int32) % n_classes
    favoured = np.arange(N_FEATURES) % n_classes == classes[:, None]
    weights = np.where(favoured, 4.0, 1.0)
    indices = np.sort([rng.choice(N_FEATURES, 10, replace=False, p=row / row.sum()) for row in weights], axis=1)
    indptr = np.arange(0, 10 * n_rows + 1, 10)
    return SparseRows(
        indptr, indices.ravel().astype(np.uint32), np.full(10 * n_rows, 0.3, np.float32), N_FEATURES
    ), classes


def labeled_first(classes: NDArray[np.int32], n_labeled: int) -> NDArray[np.int32]:
    return np.where(np.arange(len(classes)) < n_labeled, classes, -1).astype(np.int32)


def differing(first: Training, second: Training) -> float:
    return float(np.abs(first.scores - second.scores).max())


@pytest.mark.parametrize("algorithm", ["tsvm", "da"])
def test_more_labels_cost_a_fraction_of_the_passes(algorithm: str) -> None:
    rows, classes = documents(0, 600)
    options: dict[str, Any] = {"positive_fraction": 0.5, "lambda": 0.01}
    first = train(TrainingTask(rows, labeled_first(classes, 60), [0, 1], algorithm, options))
    cold = train(TrainingTask(rows, labeled_first(classes, 66), [0, 1], algorithm, options))
    warm = train(TrainingTask(rows, labeled_first(classes, 66), [0, 1], algorithm, options, start=first.model))
    assert warm.passes < 0.6 * cold.passes
    assert warm.objective == pytest.approx(cold.objective, rel=0.01)


def test_the_convex_solution_does_not_depend_on_the_start() -> None:
    rows, classes = documents(1)
    class_indices = labeled_first(classes, 40)
    other = train(TrainingTask(rows, labeled_first(classes, 20), [0, 1], "svm", {"lambda": 0.1}))
    options = {"tolerance": 1e-12}
    cold = train(TrainingTask(rows, class_indices, [0, 1], "svm", options))
    warm = train(TrainingTask(rows, class_indices, [0, 1], "svm", options, start=other.model))
    assert differing(cold, warm) < 1e-4


def test_coefficients_are_matched_by_feature_and_class() -> None:
    rows, classes = documents(2, 90, n_classes=3)
    class_indices = labeled_first(classes, 60)
    first = train(TrainingTask(rows, class_indices, ["a", "b", "c"], "svm", {"tolerance": 1e-10}))
    fewer = np.arange(rows.n_rows)[20:]
    part = rows.between(20, rows.n_rows)
    again = train(
        TrainingTask(
            part,
            class_indices[fewer],
            ["a", "b", "c"],
            "svm",
            {"tolerance": 1e-10, "max_iterations": 1, "lambda": 1e6},
            start=first.model,
        )
    )
    cold = train(TrainingTask(part, class_indices[fewer], ["a", "b", "c"], "svm", {"tolerance": 1e-10, "lambda": 1e6}))
    assert differing(again, cold) < 1e-3, "one Newton step from anywhere solves a problem that λ makes quadratic"
    started = train(TrainingTask(rows, class_indices, ["a", "b", "c"], "svm", {"tolerance": 1e-10}, start=first.model))
    assert (
        started.passes
        < 0.5 * train(TrainingTask(rows, class_indices, ["a", "b", "c"], "svm", {"tolerance": 1e-10})).passes
    )


def test_classes_that_the_start_lacks_begin_from_nothing() -> None:
    rows, classes = documents(3, 90, n_classes=3)
    two = train(TrainingTask(rows, np.where(classes < 2, classes, -1).astype(np.int32), ["a", "b"], "svm", {}))
    class_indices = labeled_first(classes, 60)
    cold = train(TrainingTask(rows, class_indices, ["a", "b", "c"], "svm", {}))
    warm = train(TrainingTask(rows, class_indices, ["a", "b", "c"], "svm", {}, start=two.model))
    assert differing(cold, warm) == 0.0
