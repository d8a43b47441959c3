"""The sum of two trainings on the same documents: one on certain labels and labels by votes, one on the certain alone.

Rules go by words. A model that learns from what they say learns these words, and may be worse than one of some fifty
certain labels, which learns from all that documents have in common. Which is better labels left out hardly tell; the
mistakes differ. So both are added as ``auto`` adds its candidates (core.selection.stack): a logarithmic opinion pool.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.models.model import LinearModel
from core.numerics.elementary import Matrix, Vector
from core.problem import Linear, Result, Status, unlabeled_scores
from core.selection.stack import Member, stack
from core.training import Training
from core.validation.calibration import Calibration
from core.validation.confidence import Confidence

FEWEST = 10
"""certain labels left out from which on a model of them alone is added"""


def _member(training: Training, certain: NDArray[np.bool_], unlabeled: NDArray[np.int64]) -> Member | None:
    """The model of a training as a part of the sum, of whose labels ``certain`` are certain, with its scores of the
    documents that are ``unlabeled`` in both; None of one that is not linear, or not calibrated.
    """
    model, held_out = training.model, training.held_out
    if not (isinstance(model, LinearModel) and isinstance(model.calibration, Calibration)) or held_out is None:
        return None
    scores = training.scores[np.searchsorted(training.unlabeled, unlabeled)]
    results = [
        Result(Linear(coefficients, float(intercept)), own, training.objective, training.status)
        for coefficients, intercept, own in zip(model.coefficients.T, model.intercepts, scores.T, strict=True)
    ]
    return Member(1.0, np.arange(len(model.features)), results, held_out[certain], model.calibration)


def _likeliest(held_out: Matrix, calibration: Calibration) -> NDArray[np.intp]:
    return np.asarray(calibration.probabilities(held_out).argmax(axis=1), np.intp)


def opinion_pool(
    voted: Training, alone: Training, certain: NDArray[np.bool_], truth: NDArray[np.intp], merits: Vector | None = None
) -> Training:
    """The sum of the two; ``voted`` where they cannot be added, as models that are not linear, or few labels left out.

    ``certain``, shape (n_labeled,), are those of the labels of ``voted`` that ``alone`` has, ``truth`` their places
    among the classes of both. Each model weighs by its ``merits``, by default the inverse fourth power of how many of
    them it has wrong when they are left out, and of one more, as candidates of ``auto`` weigh by their losses.
    """
    if alone.status is Status.CANCELLED:
        return replace(voted, status=Status.CANCELLED)
    model = voted.model
    by_votes = _member(voted, certain, voted.unlabeled)
    by_labels = _member(alone, np.ones(len(truth), bool), voted.unlabeled)
    if by_votes is None or by_labels is None or not isinstance(model, LinearModel):
        return voted
    members = by_votes, by_labels
    known = np.asarray(np.isfinite(by_votes.held_out + by_labels.held_out).all(axis=1))
    if np.count_nonzero(known) < FEWEST:
        return voted
    wrong = [
        int(np.count_nonzero(_likeliest(each.held_out[known], each.calibration) != truth[known])) for each in members
    ]
    merits = np.array([(1.0 + each) ** -4 for each in wrong]) if merits is None else merits
    weights = (merits / merits.sum()).tolist()
    pooled = stack(
        [each._replace(weight=weight) for each, weight in zip(members, weights, strict=True)], len(model.features)
    )
    decisions = [each.decision for each in pooled.results if isinstance(each.decision, Linear)]
    calibration = Calibration.plain(model.n_columns, len(model.classes))
    scores, held_out = unlabeled_scores(pooled.results), np.full((len(certain), model.n_columns), np.nan)
    held_out[certain] = pooled.held_out
    likelier = voted.confidence is None or voted.confidence.likelier
    confidence = Confidence.of(_likeliest(pooled.held_out[known], calibration), truth[known], likelier)
    warnings = [each for each in voted.warnings if voted.confidence is None or each != voted.confidence.sentence()]
    report = {
        **(voted.report or {}),
        **confidence.report(),
        "certain_labels": {"weight": weights[1], "wrong": wrong[1], "wrong_with_votes": wrong[0]},
    }
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
