"""The sum of two trainings on the same documents: one on certain labels and labels by votes, one on the certain alone.

Rules go by words. A model that learns from what they say learns these words, and may be worse than one of some fifty
certain labels, which learns from all that documents have in common. Which is better labels left out hardly tell; the
mistakes differ. So both are added as ``auto`` adds its candidates (core.selection.stack): a logarithmic opinion pool.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.models.model import LinearModel
from core.numerics.binomial import is_worse
from core.numerics.elementary import Matrix, Vector
from core.problem import Linear, Result, Status, unlabeled_scores
from core.selection.stack import Member, stack
from core.training import Training
from core.validation.calibration import Calibration
from core.validation.confidence import Confidence

FEWEST = 10
"""certain labels left out from which on a model of them alone is added"""


def _member(
    training: Training, model: LinearModel, tried: tuple[Matrix, Calibration], weight: float, places: NDArray[np.int64]
) -> Member:
    """The model of a training as a part of the sum, with its scores of the documents at these ``places``."""
    scores = training.scores[np.searchsorted(training.unlabeled, places)]
    results = [
        Result(Linear(coefficients, float(intercept)), own, training.objective, training.status)
        for coefficients, intercept, own in zip(model.coefficients.T, model.intercepts, scores.T, strict=True)
    ]
    return Member(weight, np.arange(len(model.features)), results, *tried)


def _likeliest(held_out: Matrix, calibration: Calibration) -> NDArray[np.intp]:
    return np.asarray(calibration.probabilities(held_out).argmax(axis=1), np.intp)


def opinion_pool(
    voted: Training, alone: Training, certain: NDArray[np.bool_], truth: NDArray[np.intp], merits: Vector | None = None
) -> Training:
    """The sum of the two; of models that are not linear ``voted``, unless it is worse than ``alone`` by certain labels
    left out. It stands where few of these are left out.

    ``certain``, shape (n_labeled,), are those of the labels of ``voted`` that ``alone`` has, ``truth`` their places
    among the classes of both. Each model weighs by its ``merits``, by default the inverse fourth power of how many of
    them it has wrong when they are left out, and of one more, as candidates of ``auto`` weigh by their losses.
    """
    both, of_each = (voted, alone), (certain, np.ones(len(truth), bool))
    tried = [
        (each.held_out[own], each.model.calibration)
        for each, own in zip(both, of_each, strict=True)
        if each.held_out is not None and isinstance(each.model.calibration, Calibration)
    ]
    known = np.isfinite(sum((own for own, _ in tried), np.zeros((len(truth), 1)))).all(axis=1)
    if len(tried) < len(both) or np.count_nonzero(known) < FEWEST:
        return voted
    mistakes = [_likeliest(own[known], calibration) != truth[known] for own, calibration in tried]
    wrong = [int(np.count_nonzero(each)) for each in mistakes]
    model, second, held_out = voted.model, alone.model, np.full((len(certain), tried[0][0].shape[1]), np.nan)
    if not (isinstance(model, LinearModel) and isinstance(second, LinearModel)):
        lost, gained = (int(np.count_nonzero(one & ~other)) for one, other in (mistakes, mistakes[::-1]))
        chosen = int(is_worse(gained, lost))
        held_out[certain] = tried[chosen][0]
        report = (both[chosen].report or {}) | _weighed(float(chosen), wrong)
        return replace(both[chosen], held_out=held_out, report=report, passes=voted.passes + alone.passes)
    merits = np.array([(1.0 + each) ** -4 for each in wrong]) if merits is None else merits
    weights = (merits / merits.sum()).tolist()
    members = [
        _member(training, own, of_labels, weight, voted.unlabeled)
        for training, own, of_labels, weight in zip(both, (model, second), tried, weights, strict=True)
    ]
    pooled = stack(members, len(model.features))
    decisions = [each.decision for each in pooled.results if isinstance(each.decision, Linear)]
    calibration = Calibration.plain(model.n_columns, len(model.classes))
    scores, held_out[certain] = unlabeled_scores(pooled.results), pooled.held_out
    likelier = voted.confidence is None or voted.confidence.likelier
    confidence = Confidence.of(_likeliest(pooled.held_out[known], calibration), truth[known], likelier)
    warnings = [each for each in voted.warnings if voted.confidence is None or each != voted.confidence.sentence()]
    report = {**(voted.report or {}), **confidence.report(), **_weighed(weights[1], wrong)}
    return replace(
        voted,
        model=replace(
            model,
            coefficients=np.column_stack([each.coefficients for each in decisions]),
            intercepts=np.array([each.intercept for each in decisions]),
            calibration=calibration,
        ),
        scores=scores,
        probabilities=calibration.probabilities(scores),
        status=Status.worse(voted.status, alone.status),
        trace=[*voted.trace, *alone.trace],
        passes=voted.passes + alone.passes,
        warnings=[*warnings, *([confidence.sentence()] if confidence.level == "none" else [])],
        report=report,
        held_out=held_out,
        confidence=confidence,
    )


def _weighed(weight: float, wrong: Sequence[int]) -> dict[str, Any]:
    return {"certain_labels": {"weight": weight, "wrong": wrong[1], "wrong_with_votes": wrong[0]}}
