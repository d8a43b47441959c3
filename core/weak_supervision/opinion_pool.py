"""The sum of two trainings on the same documents: one on certain labels and labels by votes, one on the certain alone.

Rules go by words. A model that learns from what they say learns these words, and may be worse than one of some fifty
certain labels, which learns from all that documents have in common. Which is better labels left out hardly tell; the
mistakes differ. So both are added as ``auto`` adds its candidates (core.selection.stack): a logarithmic opinion pool.
"""

from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.models.model import LinearModel
from core.numerics.elementary import Matrix
from core.problem import Status
from core.training import Training
from core.validation.calibration import SLOPE, Calibration
from core.validation.confidence import Confidence

FEWEST = 10
"""certain labels left out from which on a model of them alone is added"""


class _Opinion(NamedTuple):
    """A linear model, and its scores of some documents."""

    model: LinearModel
    calibration: Calibration
    held_out: Matrix
    """shape (n_certain, n_columns): of documents with a certain label, without their labels; NaN where no fold leaves
    one out"""
    scores: Matrix
    """shape (n, n_columns): of the documents that are unlabeled in both trainings"""

    @classmethod
    def of(cls, training: Training, certain: NDArray[np.bool_], unlabeled: NDArray[np.int64]) -> Self | None:
        """The model of a training, of whose labels ``certain`` are certain; None of one that is not linear, or not
        calibrated.
        """
        model, held_out = training.model, training.held_out
        if not (isinstance(model, LinearModel) and isinstance(model.calibration, Calibration)) or held_out is None:
            return None
        where = np.searchsorted(training.unlabeled, unlabeled)
        return cls(model, model.calibration, held_out[certain], training.scores[where])

    def weighing(self, weight: float) -> Self:
        """The model with scores that are ``weight`` times its logarithmic odds, divided by SLOPE, the usual slope."""
        scale = weight / SLOPE * self.calibration.slopes
        shift = weight / SLOPE * (self.calibration.offsets + self.calibration.log_odds)
        n_columns, n_classes = self.model.n_columns, len(self.model.classes)
        plain = Calibration(np.full(n_columns, SLOPE), np.zeros(n_columns), np.ones(n_classes))
        coefficients, intercepts = self.model.coefficients * scale, self.model.intercepts * scale + shift
        model = replace(self.model, coefficients=coefficients, intercepts=intercepts, calibration=plain)
        return self._replace(
            model=model, calibration=plain, held_out=self.held_out * scale + shift, scores=self.scores * scale + shift
        )

    def added(self, other: Self) -> Self:
        """The sum of two that are weighed, in the calibration of both."""
        coefficients = self.model.coefficients + other.model.coefficients
        model = replace(
            self.model, coefficients=coefficients, intercepts=self.model.intercepts + other.model.intercepts
        )
        return self._replace(model=model, held_out=self.held_out + other.held_out, scores=self.scores + other.scores)

    def likeliest(self, known: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The likeliest class of each of the ``known`` documents by its held-out scores."""
        return np.asarray(self.calibration.probabilities(self.held_out[known]).argmax(axis=1), np.intp)


def opinion_pool(voted: Training, alone: Training, certain: NDArray[np.bool_], truth: NDArray[np.intp]) -> Training:
    """The sum of the two; ``voted`` where they cannot be added, as models that are not linear, or few labels left out.

    ``certain``, shape (n_labeled,), are those of the labels of ``voted`` that ``alone`` has, ``truth`` their places
    among the classes of both. Each model weighs by the inverse fourth power of how many of them it has wrong when they
    are left out, and of one more, as candidates of ``auto`` weigh by their losses.
    """
    if alone.status is Status.CANCELLED:
        return replace(voted, status=Status.CANCELLED)
    by_votes = _Opinion.of(voted, certain, voted.unlabeled)
    by_labels = _Opinion.of(alone, np.ones(len(truth), bool), voted.unlabeled)
    if by_votes is None or by_labels is None or voted.held_out is None:
        return voted
    known = np.asarray(np.isfinite(by_votes.held_out + by_labels.held_out).all(axis=1))
    if np.count_nonzero(known) < FEWEST:
        return voted
    wrong = [int(np.count_nonzero(each.likeliest(known) != truth[known])) for each in (by_votes, by_labels)]
    merits = [(1.0 + each) ** -4 for each in wrong]
    pooled = by_votes.weighing(merits[0] / sum(merits)).added(by_labels.weighing(merits[1] / sum(merits)))
    held_out = np.full_like(voted.held_out, np.nan)
    held_out[certain] = pooled.held_out
    likelier = voted.confidence is None or voted.confidence.likelier
    confidence = Confidence.of(pooled.likeliest(known), truth[known], likelier)
    report = {
        **(voted.report or {}),
        "confidence": confidence.level,
        "summary": [confidence.sentence()],
        "certain_labels": {"weight": merits[1] / sum(merits), "wrong": wrong[1], "wrong_with_votes": wrong[0]},
    }
    return replace(
        voted,
        model=pooled.model,
        scores=pooled.scores,
        probabilities=pooled.calibration.probabilities(pooled.scores),
        status=Status.worse(voted.status, alone.status),
        trace=[*voted.trace, *alone.trace],
        passes=voted.passes + alone.passes,
        report=report,
        held_out=held_out,
        confidence=confidence,
    )
