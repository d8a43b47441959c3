"""Weights of labels: of a training by each algorithm, and of ``auto``."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from core.train import Training, TrainingContext, TrainingTask, train
from tests.core.selection.test_auto import Pool, error, pool

WEIGHTED = ("svm", "tsvm", "kernel_svm", "laplacian_rls", "auto")


def weighted(
    data: Pool, weights: NDArray[np.float64], algorithm: str = "auto", options: dict[str, Any] | None = None
) -> Training:
    task = TrainingTask(data.rows, data.class_indices, ["c0", "c1"], algorithm, options or {}, weights=weights)
    return train(task, TrainingContext(threads=1))


@pytest.mark.parametrize("algorithm", WEIGHTED)
def test_equal_weights_change_no_bit(algorithm: str) -> None:
    data = pool(0, [0.6, 0.4], n=120)
    found, plain = (weighted(data, np.full(120, weight), algorithm) for weight in (4.0, 1.0))
    np.testing.assert_array_equal(found.scores, plain.scores)


@pytest.mark.parametrize("algorithm", WEIGHTED)
def test_a_label_of_weight_0_is_none(algorithm: str) -> None:
    data = pool(0, [0.6, 0.4], n=120)
    labeled, weights = np.flatnonzero(data.class_indices >= 0), np.ones(120)
    weights[labeled[:2]] = 0.0
    found = weighted(data, weights, algorithm)
    assert set(labeled[:2]) <= set(found.unlabeled.tolist())
    without = data.class_indices.copy()
    without[labeled[:2]] = -1
    plain = weighted(data._replace(class_indices=without), np.ones(120), algorithm)
    np.testing.assert_array_equal(found.scores, plain.scores)


@pytest.mark.parametrize("options", [{}, {"probabilities": True}])
def test_a_label_that_weighs_three_times_as_much_is_the_same_document_three_times(options: dict[str, Any]) -> None:
    data = pool(1, [0.5, 0.5], n=120)
    labeled, weights = np.flatnonzero(data.class_indices >= 0), np.ones(120)
    weights[labeled[:5]] = 3.0
    repeated = np.concatenate([np.arange(120), labeled[:5], labeled[:5]])
    thrice = Pool(data.rows.taken(repeated), data.class_indices[repeated], data.truth[repeated])
    options = {"tolerance": 1e-12, **options}
    found, plain = weighted(data, weights, "svm", options), weighted(thrice, np.ones(130), "svm", options)
    np.testing.assert_allclose(found.scores, plain.scores, atol=1e-6)
    assert np.abs(found.scores - weighted(data, np.ones(120), "svm", options).scores).max() > 1e-3


def test_auto_goes_by_the_labels_that_weigh() -> None:
    """A third of 90 labels is wrong, and the owner knows of which it may be."""
    gained = []
    for seed in range(3):
        data = pool(seed, [0.5, 0.5], per_class=45, gap=1.6)
        labeled, doubtful = np.flatnonzero(data.class_indices >= 0), np.ones(400)
        wrong = np.random.default_rng(seed).permutation(labeled)[:30]
        flipped = data.class_indices.copy()
        flipped[wrong] = 1 - flipped[wrong]
        doubtful[wrong] = 0.02
        data = data._replace(class_indices=flipped)
        gained.append(error(weighted(data, np.ones(400)), data) - error(weighted(data, doubtful), data))
    assert min(gained) > 0.02
