"""Class fractions of the unlabeled documents, estimated from all evidence there is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from core.algorithms.svm import svm
from core.engine.runner import Steps, Sweeper, Vector
from core.one_vs_rest import labels_of, n_classes_of, positives_of
from core.options.linear import SvmOptions, TsvmOptions
from core.problem.problem import Problem
from core.problem.result import stopped
from core.progress import Part
from core.selection import log_evidence
from core.selection.data import Study
from core.selection.fraction_path import Path
from core.selection.posterior import Belief, belief_of, centre_of, grid_around, on_simplex
from core.validation.folds import N_FOLDS

LAMBDA = 1e-3
"""λ of the solutions by which fractions are judged, on rows of mean square norm 1"""
_SUPERVISED = 0.05
"""share of the work that the supervised models are"""


@dataclass(frozen=True)
class Estimate:
    """Fractions, and what they rest on."""

    fractions: Vector
    """shape (n_classes,), summing to 1"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores of transductive solutions at these fractions that did not know the label; NaN where none left it out"""
    grids: list[list[float]]
    """the fractions tried for each two-class problem"""
    grounds: list[dict[str, float]]
    """for each two-class problem what the labels say, what the supervised model predicts, mean and standard deviation of what all evidence says;
    empty if the fractions were given"""
    counts_used: bool
    """whether the class counts of the labels were taken as a random sample"""

    def told(self, classes: Sequence[str | int]) -> dict[str, Any]:
        """For a job's report."""
        positives = [str(classes[class_index]) for class_index in positives_of(len(classes))]
        named = dict(zip(positives, self.grounds, strict=True)) if self.grounds else None
        return {
            "class_fractions": {str(label): float(share) for label, share in zip(classes, self.fractions, strict=True)},
            "estimate": named and {"label_counts_used": self.counts_used, "classes": named},
        }


def estimate(sweeper: Sweeper, study: Study, part: Part, given: Vector | None = None) -> Estimate | None:
    """The fractions of the classes, or None if stopped before they were known; fractions that are ``given``, shape (n_classes,), stand.

    For each two-class problem transductive SVMs are solved along a grid of fractions, once with all labels and once without those of each fold,
    all of them together; see core.selection.log_evidence for what they tell.
    """
    options = SvmOptions(lambda_=LAMBDA)
    steps: dict[str, Callable[[], Steps]] = {
        f"{prefix}supervised/": partial(svm, problem, options) for prefix, problem in zip(study.prefixes, study.problems, strict=True)
    }
    supervised = sweeper.run(steps, part.part(0.0, _SUPERVISED))
    if stopped(supervised):
        return None
    predicted = shares_of(np.column_stack([result.unlabeled_scores for result in supervised]))
    if given is None:
        centres = [
            centre_of(share, int(np.count_nonzero(problem.y > 0)), problem.n_labeled)
            for share, problem in zip(predicted, study.problems, strict=True)
        ]
        grids = [grid_around(centre) for centre in centres]
    else:
        grids = [given[[positive]] for positive in study.positives]
    paths = _solved(sweeper, study, part.part(_SUPERVISED, 1.0), grids)
    if paths is None:
        return None
    return concluded(study, paths, predicted, given)


def concluded(
    study: Study, paths: Sequence[Sequence[Path]], predicted: Sequence[float], given: Vector | None = None, swallowing: bool = True
) -> Estimate:
    """What paths say, for each two-class problem those without each fold and last that with all labels, with the shares that are
    ``predicted`` without regard to fractions: ``swallowing`` if classes of more labels get more of them."""
    tried = [several[-1].fractions.tolist() for several in paths]
    if given is not None:
        return Estimate(given, np.column_stack([held_out_scores(several, study.folds)[0] for several in paths]), tried, [], False)
    beliefs = [
        belief_of(several[-1].fractions, _evidence(problem, several, study, share, study.even or not swallowing))
        for problem, several, share in zip(study.problems, paths, predicted, strict=True)
    ]
    fractions = np.array([1 - beliefs[0].mean, beliefs[0].mean]) if study.n_classes == 2 else on_simplex(beliefs)
    chosen = fractions[study.positives]
    held_out = np.column_stack([scores_at(several, study.folds, float(r)) for several, r in zip(paths, chosen, strict=True)])
    grounds = [_ground(*known) for known in zip(study.problems, predicted, beliefs, strict=True)]
    return Estimate(fractions, held_out, tried, grounds, study.informative)


def _solved(sweeper: Sweeper, study: Study, part: Part, grids: Sequence[Vector]) -> list[list[Path]] | None:
    """For each two-class problem the paths without each fold, and last that with all labels; None if stopped."""
    options = TsvmOptions(lambda_=LAMBDA)
    paths = [[Path(grid) for _ in range(N_FOLDS + 1)] for grid in grids]
    steps: dict[str, Callable[[], Steps]] = {
        f"{prefix}fractions/fold={fold}/": partial(path.steps, problem, study.folds == fold, options)
        for prefix, problem, several in zip(study.prefixes, study.problems, paths, strict=True)
        for fold, path in enumerate(several)
    }
    return None if stopped(sweeper.run(steps, part)) else paths


def _ground(problem: Problem, predicted: float, belief: Belief) -> dict[str, float]:
    return {"labeled": problem.labeled_fraction(), "predicted": predicted, "mean": belief.mean, "deviation": float(np.sqrt(belief.variance))}


def shares_of(scores: NDArray[np.float64]) -> list[float]:
    """The share of rows, scored with shape (n_rows, n_problems), that goes to the class of each two-class problem."""
    n_classes = n_classes_of(scores.shape[1])
    shares = np.bincount(labels_of(scores), minlength=n_classes) / len(scores)
    return [float(share) for share in shares[positives_of(n_classes)]]


def _evidence(problem: Problem, paths: Sequence[Path], study: Study, predicted: float, near: bool) -> Vector:
    """All of it, added up; what is not a number (of values that overflow) says nothing. ``near``: the prediction is near the truth."""
    full, known, y = paths[-1], study.left_out, problem.y
    terms = [
        log_evidence.from_counts(full.fractions, int(np.count_nonzero(y > 0)), len(y), study.n_classes, study.informative),
        log_evidence.from_prediction(full.fractions, predicted, near),
        log_evidence.from_separation(full.fractions, full.objectives, study.n_classes),
    ]
    if len(np.unique(y[known])) == 2:
        expected = 0.5 if study.informative else 1 / study.n_classes  # counts that are informative have said it already
        terms.append(log_evidence.from_held_out(held_out_scores(paths, study.folds)[:, known], y[known], expected))
    return np.asarray(sum(term for term in terms if np.isfinite(term).all()))


def held_out_scores(paths: Sequence[Path], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Scores of each labeled row by the path of the fold that left it out, shape (n_fractions, n_labeled); NaN where none did."""
    scores = np.full_like(paths[-1].labeled, np.nan)
    for fold in range(N_FOLDS):
        scores[:, folds == fold] = paths[fold].labeled[:, folds == fold]
    return scores


def scores_at(paths: Sequence[Path], folds: NDArray[np.int64], fraction: float) -> Vector:
    """Held-out scores at a fraction, between those of the grid by its logit, shape (n_labeled,)."""
    scores, grid = held_out_scores(paths, folds), logit(paths[-1].fractions)
    place = float(np.interp(logit(np.clip(fraction, 1e-9, 1 - 1e-9)), grid, np.arange(len(grid))))
    low = min(int(place), len(grid) - 2)
    return np.asarray((low + 1 - place) * scores[low] + (place - low) * scores[low + 1])
