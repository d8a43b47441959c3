"""A training warns, with a remedy, of one class for all documents wherever it is not to be expected."""

from typing import Any

import numpy as np
import pytest

from core.evaluation.training_warnings import one_class_warnings
from core.registry import OFFERED
from core.train import Training, TrainingTask, train
from tests.core.problems import rows_of

LABELED = np.array([0] * 6 + [1] * 14)
GIVING_ONE_CLASS: list[tuple[str, dict[str, Any], str]] = [
    ("kernel_svm", {"C": 1e-6}, "try a larger C or the algorithm auto"),
    ("ramp_svm", {"C": 1e-6}, "try a larger C or the algorithm auto"),
    ("ctsvm", {"C": 1e-6, "epsilon": None, "tolerance": 1e-2}, "try a larger C or the algorithm auto"),
]


def warned(given: Any, fractions: Any = None, classes: Any = ("a", "b")) -> list[str]:
    return one_class_warnings(
        np.asarray(given), LABELED, classes, None if fractions is None else np.array(fractions), "try a larger C"
    )


def test_it_says_which_class_and_what_helps() -> None:
    assert warned([1] * 1200) == [
        "all 1,200 unlabeled documents get class 'b', though 6 of 20 labels are of class 'a': the model "
        "tells no classes apart; "
        "label more documents of class 'a', or try a larger C"
    ]
    (several,) = one_class_warnings(np.zeros(40, int), np.array([0, 1, 2, 1]), [7, 8, 9], None, "try a larger C")
    assert several.startswith("all 40 unlabeled documents get class '7', though 3 of 4 labels are of other classes")


def test_it_is_silent_where_that_is_to_be_expected() -> None:
    assert warned([1] * 1199 + [0]) == []
    assert warned([]) == []
    assert warned([1] * 9) == []  # three in ten are of the other class: none in nine is nothing strange
    assert warned([1] * 11) != []
    assert warned([1] * 300, [0.005, 0.995]) == []
    assert warned([1] * 300, [0.5, 0.5]) != []


def documents(labeled: int = 20) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    truth = np.where(np.arange(120) % 10 < 3, 0, 1)
    dense = 0.3 * rng.standard_normal((120, 5)) + truth[:, None] * np.array([1.0, 0, 0, 0, 0])
    return rows_of(dense), np.where(np.arange(120) < labeled, truth, -1).astype(np.int32)


def fit(algorithm: str, options: dict[str, Any]) -> Training:
    rows, labels = documents()
    return train(TrainingTask(rows, labels, ["a", "b"], algorithm, options))


@pytest.mark.parametrize(("algorithm", "options", "remedy"), GIVING_ONE_CLASS, ids=str)
def test_a_training_that_gives_one_class_warns(algorithm: str, options: dict[str, Any], remedy: str) -> None:
    training = fit(algorithm, options)
    assert len(np.unique(training.model.labels_of(training.scores))) == 1
    (warning,) = [each for each in training.warnings if "unlabeled documents get class 'b'" in each]
    assert warning.endswith(f"label more documents of class 'a', or {remedy}")


@pytest.mark.parametrize("algorithm", OFFERED)
def test_by_default_no_algorithm_does(algorithm: str) -> None:
    needed: dict[str, dict[str, Any]] = {"ctsvm": {"tolerance": 1e-2}, "clusters": {"n_clusters": 2}}
    training = fit(algorithm, needed.get(algorithm, {}))
    assert training.warnings == []


def test_one_class_that_the_owner_asked_for_needs_no_warning() -> None:
    training = fit("tsvm", {"positive_fraction": 1.0})
    assert [each for each in training.warnings if "get class" in each] == []
