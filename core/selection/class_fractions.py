"""Class prior estimation (quantification): the class fractions of the unlabeled documents, from all evidence there is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.engine.runner import Meeting, Steps, Sweeper, Vector
from core.numerics.elementary import logit, logit_of
from core.one_vs_rest import positives_of
from core.options.linear import TsvmOptions
from core.problem.problem import Problem
from core.problem.result import ensure_complete
from core.progress import Checkpoint, Part
from core.selection import log_evidence
from core.selection.data import SelectionData
from core.selection.fraction_path import (
    SPARSE_TOLERANCE,
    TOLERANCE,
    FractionPath,
    SupervisedFit,
    coefficients_of,
    held_out_scores,
    supervised_options,
)
from core.selection.posterior import (
    Posterior,
    fine_grid,
    grid_around,
    grid_centre,
    interpolate,
    log_mean,
    posterior_of,
    project_onto_simplex,
    shrunk,
    without_common_error,
)
from core.selection.prediction import Prediction, centred_prediction

LAMBDA = 3e-3
"""λ of the solutions by which fractions are compared, on rows of mean square norm 1"""
_SUPERVISED = 0.05
"""share of the work that the supervised SVMs take"""
_LIKELY = 2.0
"""log-evidence below the largest by which a fraction at the end of those tried is likely enough to try further ones"""


@dataclass(frozen=True)
class FractionEstimate:
    """Class fractions and their grounds."""

    fractions: Vector
    """shape (n_classes,), summing to 1"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores without the label, NaN where no fold leaves it out. They are by transductive solutions at these
    fractions, of label spreading and kernel ridge regression shifted to them, of naive Bayes those of a model's columns"""
    grids: list[Vector]
    """for each two-class problem the grid of fractions"""
    tried: list[list[float]]
    """those of them that were tried"""
    grounds: list[dict[str, float]]
    """for each two-class problem the fraction among the labels, the predicted one, and the posterior's mean and standard deviation; empty if the
    fractions were given"""
    counts_used: bool
    """whether the class counts of the labels were used as a random sample"""
    starts: Sequence[Vector] = ()
    """for each two-class problem coefficients, shape (n_features + 1,), the bias last, of a solution with all labels near these fractions, from which
    others can start; none of methods that have none"""

    def report(self, classes: Sequence[str | int]) -> dict[str, Any]:
        """The estimate for a job's report."""
        positives = [str(classes[class_index]) for class_index in positives_of(len(classes))]
        named = dict(zip(positives, self.grounds, strict=True)) if self.grounds else None
        return {
            "class_fractions": by_class(self.fractions, classes),
            "estimate": named and {"label_counts_used": self.counts_used, "classes": named},
        }


def by_class(fractions: Vector, classes: Sequence[str | int]) -> dict[str, float]:
    """Class fractions, shape (n_classes,), for a job's report."""
    return {str(label): float(share) for label, share in zip(classes, fractions, strict=True)}


def estimate_fractions(
    sweeper: Sweeper, data: SelectionData, part: Part, given: Vector | None = None, checkpoint: Checkpoint = lambda: None
) -> FractionEstimate:
    """Estimate the class fractions; if they are ``given``, shape (n_classes,), only the held-out scores are new.

    ``checkpoint`` is called for each two-class problem where no solver runs. Raises what it does, and Stopped.

    For each two-class problem transductive SVMs are solved along a grid of fractions: once with all labels, and once without those of each fold.
    core.selection.log_evidence says what evidence they give. The grid's ends are solved only where the evidence does not rule them out.
    """
    predicted = _supervised_prediction(sweeper, data, part.part(0.0, _SUPERVISED))
    if given is None:
        grids = [
            grid_around(grid_centre(each.fraction, data.counts(problem), data.n_classes))
            for each, problem in zip(predicted, data.problems, strict=True)
        ]
    else:
        grids = [given[[positive]] for positive in data.positives]
    paths, starts = _solve_paths(sweeper, data, part.part(_SUPERVISED, 1.0), grids, predicted)
    return replace(combine_evidence(data, paths, predicted, given, checkpoint), starts=starts)


def _supervised_prediction(sweeper: Sweeper, data: SelectionData, part: Part) -> list[Prediction]:
    """What the supervised SVM predicts, its scores centred by labels left out; raises Stopped."""
    options, n_problems = supervised_options(LAMBDA), len(data.problems)
    fits = {(column, fold): SupervisedFit() for column in range(n_problems) for fold in range(data.n_folds)}
    steps: dict[str, Callable[[], Steps]] = {
        f"{prefix}supervised/": partial(svm, problem, options) for prefix, problem in zip(data.prefixes, data.problems, strict=True)
    }
    steps |= {
        f"{data.prefixes[column]}supervised/fold={fold}/": partial(fit.steps, data.problems[column], data.folds == fold, LAMBDA)
        for (column, fold), fit in fits.items()
    }
    supervised = sweeper.run(steps, part)[:n_problems]
    ensure_complete(supervised)
    held_out = held_out_scores(fits, data.folds, n_problems)
    scores = np.column_stack([result.unlabeled_scores for result in supervised])
    return centred_prediction(scores, held_out, data.class_indices, data.balanced)


def combine_evidence(
    data: SelectionData,
    paths: Sequence[Sequence[FractionPath]],
    predicted: Sequence[Prediction],
    given: Vector | None = None,
    checkpoint: Checkpoint = lambda: None,
) -> FractionEstimate:
    """The estimate by paths, for each two-class problem those without each fold and last the one with all labels.

    ``predicted`` are the fractions by a model that has none set. ``checkpoint`` is called for each two-class problem; what it raises ends the work.
    """
    grids, tried = [several[-1].fractions for several in paths], [several[-1].fractions[several[-1].solved].tolist() for several in paths]
    if given is not None:
        return FractionEstimate(given, np.column_stack([path_scores(several, data.folds)[0] for several in paths]), grids, tried, [], False)
    curves = _curves(data, paths, predicted, checkpoint, sampled=False)
    n_sampled = _n_sampled(data, curves)
    if data.n_classes > 2 and 2 * n_sampled > len(data.class_indices):
        curves = _curves(data, paths, predicted, checkpoint, sampled=True)
    posteriors = _posteriors(data, curves)
    if data.n_classes == 2:
        fractions = np.array([1 - posteriors[0].mean, posteriors[0].mean])
    else:
        posteriors = shrunk(without_common_error(posteriors))
        fractions = project_onto_simplex(posteriors)
    chosen = fractions[data.positives]
    held_out = np.column_stack([path_scores_at(several, data.folds, float(r)) for several, r in zip(paths, chosen, strict=True)])
    grounds = [_grounds_of(*each) for each in zip(data.problems, predicted, posteriors, strict=True)]
    return FractionEstimate(fractions, held_out, grids, tried, grounds, n_sampled > 0)


class _Assumed(NamedTuple):
    """What is taken for true while the fraction of a two-class problem is asked for."""

    predicted: Prediction
    """the fraction by a model that has none set"""
    shares: Vector
    """shape (n_classes,): a guess of the share of each class in the documents, for the rates of all other classes together"""
    sampled: bool
    """whether most labels are a random sample, of which a class has its fraction; otherwise it has as many of them as the others"""


def _assumed(data: SelectionData, predicted: Sequence[Prediction], *, sampled: bool) -> list[_Assumed]:
    """For each two-class problem. Classes have the shares that are predicted, or those of the labels if these are ``sampled``."""
    if sampled:
        shares = np.bincount(data.class_indices, minlength=data.n_classes) / len(data.class_indices)
    else:
        shares = np.full(data.n_classes, log_evidence.LEAST)
        shares[data.positives] = np.maximum([each.fraction for each in predicted], log_evidence.LEAST)
    return [_Assumed(each, shares, sampled) for each in predicted]


class _Curve(NamedTuple):
    """What all sources but numbers of unknown origin say of the fraction of one two-class problem."""

    grid: Vector
    """shape (n,): fractions, close together"""
    evidence: Vector
    """shape (n,): the sum of the sources at these"""


def _curves(
    data: SelectionData, paths: Sequence[Sequence[FractionPath]], predicted: Sequence[Prediction], checkpoint: Checkpoint, *, sampled: bool
) -> list[_Curve]:
    curves = []
    for problem, several, assumed in zip(data.problems, paths, _assumed(data, predicted, sampled=sampled), strict=True):
        grid = fine_grid(several[-1].fractions)
        curves.append(_Curve(grid, _log_evidence(grid, problem, several, data, assumed)))
        checkpoint()
    return curves


def _n_sampled(data: SelectionData, curves: Sequence[_Curve]) -> int:
    """How many of the labels are a random sample's: as is said, or more likely than not."""
    counts = data.counts(data.problems[0])
    unknown = counts.unknown_total and sum(_sample_log_odds(data, curves)) > 0
    return counts.total + (counts.unknown_total if unknown else 0)


def _sample_log_odds(data: SelectionData, curves: Sequence[_Curve]) -> list[float]:
    """For each two-class problem the log-odds that its labels of unknown origin are a random sample, by all other evidence."""
    return [
        log_mean(curve.evidence, log_evidence.sample_log_odds(curve.grid, data.counts(problem)))
        for problem, curve in zip(data.problems, curves, strict=True)
    ]


def _posteriors(data: SelectionData, curves: Sequence[_Curve]) -> list[Posterior]:
    """The posterior of each two-class problem's fraction.

    The labels of all classes are a random sample together, or none: what the numbers of one class say depends on how those of the others agree with
    their fractions.
    """
    if not data.counts(data.problems[0]).unknown_total:
        return [posterior_of(*curve) for curve in curves]
    of_classes, found = _sample_log_odds(data, curves), []
    for problem, (grid, evidence), own in zip(data.problems, curves, of_classes, strict=True):
        log_odds = log_evidence.sample_log_odds(grid, data.counts(problem))
        found.append(posterior_of(grid, evidence + log_evidence.from_counts(log_odds, sum(of_classes) - own)))
    return found


def _solve_paths(
    sweeper: Sweeper, data: SelectionData, part: Part, grids: Sequence[Vector], predicted: Sequence[Prediction]
) -> tuple[list[list[FractionPath]], list[Vector]]:
    """For each two-class problem the paths without each fold, and last the one with all labels; and a solution of the latter. Raises Stopped.

    The paths of a problem meet to decide how far they go.
    """
    options = TsvmOptions(lambda_=LAMBDA, tolerance=TOLERANCE if data.dense else SPARSE_TOLERANCE)
    paths = [[FractionPath(grid) for _ in range(data.n_folds + 1)] for grid in grids]
    meetings = [
        Meeting(len(several), partial(_likely_ends, problem, several, data, assumed))
        for problem, several, assumed in zip(data.problems, paths, _assumed(data, predicted, sampled=False), strict=True)
    ]
    steps: dict[str, Callable[[], Steps]] = {
        f"{prefix}fractions/fold={fold}/": partial(path.steps, problem, data.folds == fold, options, meeting)
        for prefix, problem, several, meeting in zip(data.prefixes, data.problems, paths, meetings, strict=True)
        for fold, path in enumerate(several)
    }
    results = sweeper.run(steps, part)
    return paths, [coefficients_of(result) for result in results[data.n_folds :: data.n_folds + 1]]


def _likely_ends(problem: Problem, paths: Sequence[FractionPath], data: SelectionData, assumed: _Assumed) -> list[int]:
    """The positions of the grid beside those ends of what is solved that are nearly as likely as the likeliest fraction."""
    grid, solved = paths[-1].fractions, paths[-1].solved
    evidence = _log_evidence(grid[solved], problem, paths, data, assumed)
    likely = evidence > evidence.max() - _LIKELY
    beside = [solved.start - 1] * bool(likely[0]) + [solved.stop] * bool(likely[-1])
    return [position for position in beside if 0 <= position < len(grid)]


def _grounds_of(problem: Problem, predicted: Prediction, posterior: Posterior) -> dict[str, float]:
    return {
        "labeled": float(np.mean(problem.y > 0)),
        "predicted": predicted.fraction,
        "mean": posterior.mean,
        "deviation": float(np.sqrt(posterior.variance)),
    }


def _log_evidence(at: Vector, problem: Problem, paths: Sequence[FractionPath], data: SelectionData, assumed: _Assumed) -> Vector:
    """The sum of all sources but numbers of unknown origin at some fractions, both of shape (n,). A source that is not finite is left out."""
    full, solved, left_out, y = paths[-1], paths[-1].solved, data.left_out, problem.y
    fractions = full.fractions[solved]
    sources = [
        log_evidence.from_sample(at, data.counts(problem), data.n_classes),
        log_evidence.from_prediction(at, *assumed.predicted),
        interpolate(fractions, log_evidence.from_separation(fractions, full.objectives[solved], data.n_classes), at),
    ]
    if len(np.unique(y[left_out])) == 2:
        expected = 0.5 if assumed.sampled else 1 / data.n_classes
        scores, labels = path_scores(paths, data.folds)[:, left_out], y[left_out]
        trust = log_evidence.trust_in_count(scores, labels)
        held_out = log_evidence.from_held_out(scores, labels, expected, averaged=data.n_classes == 2)
        above = scores > path_thresholds(paths, data.folds)[:, left_out]
        rates = log_evidence.rates_above(above, labels, data.class_indices[left_out], assumed.shares)
        # rates are nearly linear between the fractions that were tried; the likelihood of many labels is a narrow peak, which these may miss
        between = log_evidence.Rates(*(np.interp(logit(at), logit(fractions), each) for each in rates))
        sources.append(interpolate(fractions, (1 - trust) * held_out, at) + trust * log_evidence.from_adjusted_count(at, between))
    return np.asarray(sum(source for source in sources if np.isfinite(source).all()))


def path_scores(paths: Sequence[FractionPath], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Held-out scores of each labeled row by the path without its fold, shape (n_solved, n_labeled); NaN where no fold leaves it out."""
    solved = paths[-1].solved
    scores = np.full_like(paths[-1].labeled[solved], np.nan)
    for fold, path in enumerate(paths[:-1]):
        scores[:, folds == fold] = path.labeled[solved][:, folds == fold]
    return scores


def path_thresholds(paths: Sequence[FractionPath], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The thresholds above which the paths without each fold have their fractions, shape (n_solved, n_labeled); 0 where no fold leaves it out."""
    solved = paths[-1].solved
    thresholds = np.zeros_like(paths[-1].labeled[solved])
    for fold, path in enumerate(paths[:-1]):
        thresholds[:, folds == fold] = path.thresholds[solved][:, None]
    return thresholds


def path_scores_at(paths: Sequence[FractionPath], folds: NDArray[np.int64], fraction: float) -> Vector:
    """Held-out scores at a fraction, interpolated over the logits of those that were tried, shape (n_labeled,); of one that was, its scores."""
    scores, grid = path_scores(paths, folds), logit(paths[-1].fractions[paths[-1].solved])
    if len(grid) == 1:
        return np.asarray(scores[0])
    place = float(np.interp(logit_of(min(max(fraction, 1e-9), 1 - 1e-9)), grid, np.arange(len(grid))))
    low = min(int(place), len(grid) - 2)
    return np.asarray((low + 1 - place) * scores[low] + (place - low) * scores[low + 1])
