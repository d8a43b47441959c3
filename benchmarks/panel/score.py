"""Measures of a method on a task."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from benchmarks.base import rows_of
from benchmarks.panel import measures
from benchmarks.panel.draws import Labels
from benchmarks.panel.sets import documents
from core.evaluation.measures import Reliability
from core.train import Training, TrainingTask


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
        agreement = measures.kappa(answer, truth, n_classes)
        return cls(measures.error(answer, truth), agreement, seconds, chosen=chosen, answers=answers)

    def with_report(self, training: Training, truth: NDArray[np.int32], n_classes: int) -> Self:
        """The score with figures from the report of ``auto``."""
        assert training.report is not None
        assert training.probabilities is not None
        fractions = np.array([training.report["class_fractions"][str(each)] for each in range(n_classes)])
        return self._replace(
            variation=measures.total_variation(fractions, measures.class_fractions(truth, n_classes)),
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
