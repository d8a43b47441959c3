"""Measures of an answer, and of a method on a task: error, agreement beyond chance, class fractions, calibration."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.panel.draws import Labels
from benchmarks.panel.sets import documents
from core.evaluation.measures import Reliability
from core.train import Training, TrainingTask
from tests.core.problems import rows_of


def error(answer: NDArray[np.integer[Any]], truth: NDArray[np.integer[Any]]) -> float:
    return float(np.mean(answer != truth))


def class_fractions(class_indices: NDArray[np.integer[Any]], n_classes: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(class_indices, minlength=n_classes) / len(class_indices))


def total_variation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Half the summed difference of two distributions: the mass that would have to move."""
    return float(np.abs(one - other).sum() / 2)


def kappa(answer: NDArray[np.integer[Any]], truth: NDArray[np.integer[Any]], n_classes: int) -> float:
    """Cohen's kappa: (accuracy − chance) / (1 − chance); 0 of one class for all, 1 if all is right."""
    by_chance = float(class_fractions(answer, n_classes) @ class_fractions(truth, n_classes))
    return (1 - error(answer, truth) - by_chance) / (1 - by_chance) if by_chance < 1 else 0.0


class Score(NamedTuple):
    """Measures of a method on the documents that it had no labels of; None where it has no such answer."""

    error: float
    kappa: float
    """Cohen's kappa: what it gets right beyond chance"""
    seconds: float
    variation: float | None = None
    """total variation between its class fractions and the true ones"""
    calibration: float | None = None
    """expected calibration error"""
    chosen: str = ""
    """method, λ or options that it selected"""
    confidence: str = ""
    """what it says of how far it can be trusted"""
    answers: Sequence[int] = ()
    """documents that it gives each class"""

    @classmethod
    def of(
        cls,
        answer: NDArray[np.integer[Any]],
        truth: NDArray[np.int32],
        n_classes: int,
        seconds: float,
        chosen: str = "",
    ) -> Self:
        """The score of class indices, both of shape (n_unlabeled,)."""
        answers = np.bincount(answer, minlength=n_classes).tolist()
        agreement = kappa(answer, truth, n_classes)
        return cls(error(answer, truth), agreement, seconds, chosen=chosen, answers=answers)

    def with_report(self, training: Training, truth: NDArray[np.int32], n_classes: int) -> Self:
        """The score with figures from the report of ``auto``."""
        assert training.report is not None
        assert training.probabilities is not None
        fractions = np.array([training.report["class_fractions"][str(each)] for each in range(n_classes)])
        return self._replace(
            variation=total_variation(fractions, class_fractions(truth, n_classes)),
            calibration=Reliability.of(training.probabilities, truth).expected_error,
            chosen=training.report["chosen"]["algorithm"],
            confidence=training.report["confidence"],
        )


class Setting(NamedTuple):
    """A set with labels, as a method gets it."""

    name: str
    labels: Labels
    seed: int
    threads: int

    @property
    def n_classes(self) -> int:
        """Classes of the set."""
        return len(documents(self.name).classes)

    @property
    def truth(self) -> NDArray[np.int32]:
        """shape (n_unlabeled,): true classes of the documents that have no label."""
        return np.delete(documents(self.name).class_indices, self.labels.positions)

    @property
    def known(self) -> NDArray[np.int32]:
        """shape (n_documents,): class indices as given, -1 where there is no label."""
        return self._spread(self.labels.told, -1)

    def task(self, algorithm: str, options: dict[str, Any]) -> TrainingTask:
        """The training of an algorithm on it, without a word on how labels of unknown origin were come by."""
        rows, drawn = rows_of(documents(self.name).X), self._spread(self.labels.drawn, 0)
        return TrainingTask(rows, self.known, list(range(self.n_classes)), algorithm, options, self.seed, drawn=drawn)

    def _spread(self, values: NDArray[Any], other: int) -> NDArray[np.int32]:
        spread = np.full(documents(self.name).X.shape[0], other, np.int32)
        spread[self.labels.positions] = values
        return spread
