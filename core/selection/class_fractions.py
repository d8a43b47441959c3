"""Class prior estimation (quantification): the class fractions of the unlabeled documents, from all evidence there is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.engine.runner import Steps, Sweeper, Vector
from core.numerics.elementary import logit, logit_of
from core.one_vs_rest import labels_of, n_classes_of, positives_of
from core.options.linear import SvmOptions, TsvmOptions
from core.problem.problem import Problem
from core.problem.result import ensure_complete
from core.progress import Part
from core.selection import log_evidence
from core.selection.data import SelectionData
from core.selection.fraction_path import FractionPath
from core.selection.posterior import Posterior, grid_around, grid_centre, posterior_of, project_onto_simplex

LAMBDA = 1e-3
"""λ of the solutions by which fractions are compared, on rows of mean square norm 1"""
_LEAST_VARIANCE = 1e-4
"""of a fraction, however sure the evidence is"""
_RANDOM = 1.0
"""in nats: least evidence of a random sample by which numbers of labels count"""
_SUPERVISED = 0.05
"""share of the work that the supervised SVMs take"""


@dataclass(frozen=True)
class FractionEstimate:
    """Class fractions and their grounds."""

    fractions: Vector
    """shape (n_classes,), summing to 1"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores by transductive solutions at these fractions without the label; NaN where no fold leaves it out"""
    grids: list[list[float]]
    """fractions tried for each two-class problem"""
    grounds: list[dict[str, float]]
    """for each two-class problem the fraction among the labels, the predicted one, and the posterior's mean and standard deviation; empty if the
    fractions were given"""
    counts_used: bool
    """whether the class counts of the labels were used as a random sample"""

    def report(self, classes: Sequence[str | int]) -> dict[str, Any]:
        """The estimate for a job's report."""
        positives = [str(classes[class_index]) for class_index in positives_of(len(classes))]
        named = dict(zip(positives, self.grounds, strict=True)) if self.grounds else None
        return {
            "class_fractions": {str(label): float(share) for label, share in zip(classes, self.fractions, strict=True)},
            "estimate": named and {"label_counts_used": self.counts_used, "classes": named},
        }


def estimate_with_draw(sweeper: Sweeper, data: SelectionData, part: Part, given: Vector | None = None) -> tuple[SelectionData, FractionEstimate]:
    """The class fractions, and the data as they are to be learned from; raises Stopped.

    Nobody may have said how unequal numbers of labels came about. If they are of a random sample, they are evidence of the fractions. If somebody
    labeled so many of each class, or what a model suggested, they are none, and would mislead every solution. So the fractions are estimated
    without them first. If the numbers are likelier by a random sample at these fractions than if any numbers were as likely, they count.
    """
    if data.balanced or data.drawn == "random":
        return data, estimate_fractions(sweeper, data, part, given)
    designed = data.weighted_by_class()
    if data.drawn == "chosen":
        return designed, estimate_fractions(sweeper, designed, part, given)
    found = estimate_fractions(sweeper, designed, part.part(0.0, 0.5), given)
    if not _looks_random(designed, found):
        return designed, found
    return data, estimate_fractions(sweeper, data, part.part(0.5, 1.0), given)


def _looks_random(data: SelectionData, found: FractionEstimate) -> bool:
    """Whether the numbers of labels speak for a random sample, given the fractions that were estimated without them.

    The Bayes factor of a beta-binomial law, with the posterior's mean and variance, against all numbers being as likely; one class after the other.
    """
    total, score = len(data.class_indices), 0.0
    for number, (problem, positive) in enumerate(zip(data.problems, data.positives, strict=True)):
        mean, variance = float(found.fractions[positive]), 0.0
        if found.grounds:
            mean, variance = found.grounds[number]["mean"], found.grounds[number]["deviation"] ** 2
        score += log_evidence.beta_binomial(int(np.count_nonzero(problem.y > 0)), total, mean, max(variance, _LEAST_VARIANCE))
        score -= log_evidence.uniform(total)
    return score > _RANDOM


def estimate_fractions(sweeper: Sweeper, data: SelectionData, part: Part, given: Vector | None = None) -> FractionEstimate:
    """Estimate the class fractions; if they are ``given``, shape (n_classes,), only the held-out scores are new. Raises Stopped.

    For each two-class problem transductive SVMs are solved along a grid of fractions: once with all labels, and once without those of each fold.
    core.selection.log_evidence says what evidence they give.
    """
    options = SvmOptions(lambda_=LAMBDA)
    steps: dict[str, Callable[[], Steps]] = {
        f"{prefix}supervised/": partial(svm, problem, options) for prefix, problem in zip(data.prefixes, data.problems, strict=True)
    }
    supervised = sweeper.run(steps, part.part(0.0, _SUPERVISED))
    ensure_complete(supervised)
    predicted = predicted_fractions(np.column_stack([result.unlabeled_scores for result in supervised]))
    if given is None:
        centres = [
            grid_centre(share, int(np.count_nonzero(problem.y > 0)), problem.n_labeled)
            for share, problem in zip(predicted, data.problems, strict=True)
        ]
        grids = [grid_around(centre) for centre in centres]
    else:
        grids = [given[[positive]] for positive in data.positives]
    paths = _solve_paths(sweeper, data, part.part(_SUPERVISED, 1.0), grids)
    return combine_evidence(data, paths, predicted, given)


def combine_evidence(
    data: SelectionData,
    paths: Sequence[Sequence[FractionPath]],
    predicted: Sequence[float],
    given: Vector | None = None,
    favours_majority: bool = True,
) -> FractionEstimate:
    """The estimate by paths, for each two-class problem those without each fold and last the one with all labels.

    ``predicted`` are the fractions by a model that has none set. ``favours_majority``: it gives classes of more labels more than their share.
    """
    tried = [several[-1].fractions.tolist() for several in paths]
    if given is not None:
        return FractionEstimate(given, np.column_stack([path_scores(several, data.folds)[0] for several in paths]), tried, [], False)
    posteriors = [
        posterior_of(several[-1].fractions, _log_evidence(problem, several, data, share, data.balanced or not favours_majority))
        for problem, several, share in zip(data.problems, paths, predicted, strict=True)
    ]
    fractions = np.array([1 - posteriors[0].mean, posteriors[0].mean]) if data.n_classes == 2 else project_onto_simplex(posteriors)
    chosen = fractions[data.positives]
    held_out = np.column_stack([path_scores_at(several, data.folds, float(r)) for several, r in zip(paths, chosen, strict=True)])
    grounds = [_grounds_of(*known) for known in zip(data.problems, predicted, posteriors, strict=True)]
    return FractionEstimate(fractions, held_out, tried, grounds, data.informative)


def _solve_paths(sweeper: Sweeper, data: SelectionData, part: Part, grids: Sequence[Vector]) -> list[list[FractionPath]]:
    """For each two-class problem the paths without each fold, and last the one with all labels; raises Stopped."""
    options = TsvmOptions(lambda_=LAMBDA)
    paths = [[FractionPath(grid) for _ in range(data.n_folds + 1)] for grid in grids]
    steps: dict[str, Callable[[], Steps]] = {
        f"{prefix}fractions/fold={fold}/": partial(path.steps, problem, data.folds == fold, options)
        for prefix, problem, several in zip(data.prefixes, data.problems, paths, strict=True)
        for fold, path in enumerate(several)
    }
    sweeper.run(steps, part)
    return paths


def _grounds_of(problem: Problem, predicted: float, posterior: Posterior) -> dict[str, float]:
    return {"labeled": float(np.mean(problem.y > 0)), "predicted": predicted, "mean": posterior.mean, "deviation": float(np.sqrt(posterior.variance))}


def predicted_fractions(scores: NDArray[np.float64]) -> list[float]:
    """The fraction of rows that scores of shape (n_rows, n_problems) give the class of each two-class problem."""
    n_classes = n_classes_of(scores.shape[1])
    fractions = np.bincount(labels_of(scores), minlength=n_classes) / len(scores)
    return [float(fraction) for fraction in fractions[positives_of(n_classes)]]


def _log_evidence(problem: Problem, paths: Sequence[FractionPath], data: SelectionData, predicted: float, near: bool) -> Vector:
    """The sum of all sources, shape (n,). A source that is not finite, of values that overflow, is left out. ``near``: see from_prediction."""
    full, known, y = paths[-1], data.left_out, problem.y
    sources = [
        log_evidence.from_counts(full.fractions, int(np.count_nonzero(y > 0)), len(y), data.n_classes, data.informative),
        log_evidence.from_prediction(full.fractions, predicted, near),
        log_evidence.from_separation(full.fractions, full.objectives, data.n_classes),
    ]
    if len(np.unique(y[known])) == 2:
        expected = 0.5 if data.informative else 1 / data.n_classes  # informative counts have been used already
        sources.append(log_evidence.from_held_out(path_scores(paths, data.folds)[:, known], y[known], expected))
    return np.asarray(sum(source for source in sources if np.isfinite(source).all()))


def path_scores(paths: Sequence[FractionPath], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Held-out scores of each labeled row by the path without its fold, shape (n_fractions, n_labeled); NaN where no fold leaves it out."""
    scores = np.full_like(paths[-1].labeled, np.nan)
    for fold in range(len(paths) - 1):
        scores[:, folds == fold] = paths[fold].labeled[:, folds == fold]
    return scores


def path_scores_at(paths: Sequence[FractionPath], folds: NDArray[np.int64], fraction: float) -> Vector:
    """Held-out scores at a fraction, interpolated over the grid's logits, shape (n_labeled,)."""
    scores, grid = path_scores(paths, folds), logit(paths[-1].fractions)
    place = float(np.interp(logit_of(min(max(fraction, 1e-9), 1 - 1e-9)), grid, np.arange(len(grid))))
    low = min(int(place), len(grid) - 2)
    return np.asarray((low + 1 - place) * scores[low] + (place - low) * scores[low + 1])
