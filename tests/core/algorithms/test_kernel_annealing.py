"""Annealing in the space of a kernel against the plain annealing over a root of the kernel matrix."""

import numpy as np
import pytest

from core.options.subspace import KernelAnnealingOptions
from core.problem import Expansion
from core.train import TrainingTask, train
from tests.core.problems import Array, small, solve
from tests.reference.annealing import anneal


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
