"""The sum of two trainings on the same documents: one on certain labels and labels by votes, one on the certain alone.

Rules go by words. A model that learns from what they say learns these words, and may be worse than one of some fifty
certain labels, which learns from all that documents have in common. Which is better labels left out hardly tell; the
mistakes differ. So both are added as ``auto`` adds its candidates (core.selection.stack): a logarithmic opinion pool.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.models.model import LinearModel
from core.numerics.binomial import is_worse
from core.numerics.elementary import Matrix, Vector, log, log_of, log_sum_exp, softmax
from core.problem import Linear, Result, Status, unlabeled_scores
from core.selection.prediction import judge
from core.selection.stack import Member, stack
from core.task import Training
from core.validation.calibration import Calibration
from core.validation.confidence import Confidence

FEWEST = 10
"""certain labels left out from which on a model of them alone is added"""
LEAST_PROBABILITY = 0.01
"""least probability that a label is taken to have: any may be wrong"""
_PAIRS = np.array([(first, second) for first in range(6) for second in range(6) if first or second]) / 5
"""weights of two models that are compared"""
_ENOUGH = 5000
"""labels left out by which weights are found, at most twice as many"""


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


def _weights(tried: Sequence[tuple[Matrix, Calibration]], known: NDArray[np.bool_], truth: NDArray[np.intp]) -> Vector:
    """The weights of two models in their sum, shape (2,): the mean of all pairs of fifths from 0 to 1, each of which
    counts by how likely it makes the labels left out that are ``known``.

    So the sum is as sure as these labels say: weights whose total is below 1 take back what models are too sure of. A
    label that is unlikely by all pairs may be wrong, and decides little.
    """
    kept = np.flatnonzero(known)[:: 1 + np.count_nonzero(known) // _ENOUGH]
    first, second = (log(calibration.probabilities(own[kept])) for own, calibration in tried)
    likely = np.zeros(len(_PAIRS))
    for place, (weight, other) in enumerate(_PAIRS):
        logits = weight * first + other * second
        own = logits[np.arange(len(kept)), truth[kept]] - log_sum_exp(logits, axis=1)
        likely[place] = np.maximum(own, log_of(LEAST_PROBABILITY)).sum()
    return np.asarray((softmax(likely[None])[0][:, None] * _PAIRS).sum(axis=0))


def opinion_pool(voted: Training, alone: Training, truth: NDArray[np.intp], weights: Vector | None = None) -> Training:
    """The sum of the two; of models that are not linear ``voted``, unless it is worse than ``alone`` by certain labels
    left out. It stands where few of these are left out.

    ``truth`` are the places of the labels that were held out by both, shape (n_labels,), among the classes of both.
    Their ``weights`` in the sum, shape (2,), are by default those by which labels left out are likeliest.
    """
    both = (voted, alone)
    tried = [
        (each.held_out, each.model.calibration)
        for each in both
        if each.held_out is not None and isinstance(each.model.calibration, Calibration)
    ]
    known = np.asarray(np.isfinite(sum((own for own, _ in tried), np.zeros((len(truth), 1)))).all(axis=1))
    if len(tried) < len(both) or np.count_nonzero(known) < FEWEST:
        return voted
    mistakes = [calibration.probabilities(own[known]).argmax(axis=1) != truth[known] for own, calibration in tried]
    wrong = {
        name: int(np.count_nonzero(each)) for name, each in zip(("wrong_with_votes", "wrong"), mistakes, strict=True)
    }
    model, second = voted.model, alone.model
    if not (isinstance(model, LinearModel) and isinstance(second, LinearModel)):
        lost, gained = (int(np.count_nonzero(one & ~other)) for one, other in (mistakes, mistakes[::-1]))
        chosen = int(is_worse(gained, lost))
        report = (both[chosen].report or {}) | {"certain_labels": {"weight": float(chosen), **wrong}}
        return replace(both[chosen], report=report, passes=voted.passes + alone.passes)
    weights = _weights(tried, known, truth) if weights is None else weights
    members = [
        _member(training, own, of_labels, weight, voted.unlabeled)
        for training, own, of_labels, weight in zip(both, (model, second), tried, weights.tolist(), strict=True)
    ]
    pooled = stack(members, len(model.features))
    decisions = [each.decision for each in pooled.results if isinstance(each.decision, Linear)]
    calibration = Calibration.plain(model.n_columns, len(model.classes))
    scores = unlabeled_scores(pooled.results)
    confidence = Confidence.of(
        calibration.probabilities(pooled.held_out[known]).argmax(axis=1),
        truth[known],
        judge(pooled.held_out[known], truth[known]).likelier,
    )
    warnings = [each for each in voted.warnings if voted.confidence is None or each != voted.confidence.sentence()]
    added = {"certain_labels": {"weight": float(weights[1] / weights.sum()), **wrong}}
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
        report={**(voted.report or {}), **confidence.report(), **added},
        held_out=pooled.held_out,
        confidence=confidence,
    )
