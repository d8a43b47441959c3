"""Held-out scores of a training: of every label that a fold leaves out, by models that were not told it."""

from typing import Any

import numpy as np
import pytest

from core.train import TrainingTask, train
from tests.stores import sparse, two_clouds
from tests.there import there

BATCH = two_clouds(60, 6)
LABELED = np.array([label is not None for label in BATCH.labels])
TRUE = np.where(LABELED, np.arange(60) % 2, -1)


def task(algorithm: str, class_indices: Any = TRUE, **options: Any) -> TrainingTask:
    return TrainingTask(
        sparse(BATCH.rows), np.asarray(class_indices), range(int(max(class_indices)) + 1), algorithm, options
    )


@pytest.mark.parametrize(
    ("algorithm", "options"), [("auto", {}), ("svm", {"probabilities": True}), ("tsvm", {"probabilities": True})]
)
def test_labels_left_out_are_scored(algorithm: str, options: dict[str, Any]) -> None:
    training = train(task(algorithm, **options))
    assert training.held_out is not None
    assert training.held_out.shape == (12, 1)
    assert training.model.labels_of(training.held_out).tolist() == TRUE[LABELED].tolist()


@pytest.mark.parametrize(("algorithm", "options"), [("auto", {}), ("svm", {"probabilities": True})])
def test_a_wrong_label_is_not_repeated(algorithm: str, options: dict[str, Any]) -> None:
    """A model repeats a label that it is told; held-out scores come from the other labels."""
    wrong = TRUE.copy()
    wrong[4] = 1
    training = train(task(algorithm, wrong, **options))
    assert training.model.labels_of(there(training.held_out))[4] == 0


def test_the_only_label_of_a_class_is_left_out_by_no_fold() -> None:
    three = TRUE.copy()
    three[5] = 2
    training = train(task("auto", three))
    assert np.flatnonzero(np.isnan(there(training.held_out)).any(axis=1)).tolist() == [5]


def test_without_cross_validation_there_are_none() -> None:
    assert train(task("svm")).held_out is None
