"""Class prior estimation (quantification): the class fractions of the unlabeled documents, from all evidence there
is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.documents.drawn import Draw
from core.engine.requests import Barrier, Steps
from core.engine.runner import Scheduler
from core.numerics.elementary import Vector, logit, logit_of
from core.one_vs_rest import labels_of, positives_of
from core.options.linear import TsvmOptions
from core.problem import ensure_complete, unlabeled_scores
from core.progress import Checkpoint, Phase, Span
from core.selection import log_evidence
from core.selection.answers import SHARED, adjust_answers, count_answers, posterior_of_classes
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
from core.selection.naive_bayes_em import Moments, NaiveBayesEM
from core.selection.posterior import (
    RANDOM_LABELS,
    bounded_fractions,
    fine_grid,
    grid_around,
    grid_centre,
    interpolate,
    log_mean,
    posterior_of,
)
from core.selection.prediction import Prediction, centred_prediction, judge, midpoints
from core.selection.registry import densities_apply
from core.validation.folds import without

LAMBDA = 3e-3
"""λ of the solutions by which fractions are compared, on rows of mean square norm 1"""
_NAMED = 10
"""classes that a warning names"""


@dataclass(frozen=True)
class FractionEstimate:
    """Class fractions and their grounds."""

    fractions: Vector
    """shape (n_classes,), summing to 1"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems): scores without the label, NaN where no fold leaves it out. They are by
    transductive solutions at these fractions, of label spreading and kernel ridge regression shifted to them, of naive
    Bayes those of a model's columns"""
    grids: list[Vector]
    """for each two-class problem the grid of fractions"""
    tried: list[list[float]]
    """those of them that were tried"""
    grounds: list[dict[str, float]]
    """for each two-class problem the fraction among the labels, the predicted one, and the posterior's mean and
    standard deviation; empty if the fractions were given"""
    counts_used: bool
    """whether the class counts of the labels were used as a random sample"""
    starts: Sequence[Vector] = ()
    """for each two-class problem coefficients, shape (n_features + 1,), the bias last, of a solution with all labels at
    these fractions, from which others can start; empty where there is none. A solution at other fractions would lead to
    a worse minimum, and on dense rows the growing λ' finds better ones than any start"""
    guessed: Sequence[int] = ()
    """classes whose fractions hang on a guess"""

    def report(self, classes: Sequence[str | int]) -> dict[str, Any]:
        """The estimate for a job's report."""
        positives = [str(classes[class_index]) for class_index in positives_of(len(classes))]
        named = dict(zip(positives, self.grounds, strict=True)) if self.grounds else None
        return {
            "class_fractions": by_class(self.fractions, classes),
            "estimate": named and {"label_counts_used": self.counts_used, "classes": named},
            "fractions": {"guessed": [str(classes[each]) for each in self.guessed]},
        }


def fraction_warnings(report: Mapping[str, Any]) -> list[str]:
    """Which classes have fractions that hang on a guess, by the report of a training."""
    guessed = report.get("fractions", {}).get("guessed", [])
    if not guessed:
        return []
    named = ", ".join(map(repr, guessed[:_NAMED])) + (", …" if len(guessed) > _NAMED else "")
    return [
        f"how frequent these classes are is a guess: {named}; some {RANDOM_LABELS} labels of documents drawn at random "
        "would settle it, or class_fractions, where they are known"
    ]


def by_class(fractions: Vector, classes: Sequence[str | int]) -> dict[str, float]:
    """Class fractions, shape (n_classes,), for a job's report."""
    return {str(label): float(share) for label, share in zip(classes, fractions, strict=True)}


def combine_evidence(
    data: SelectionData,
    paths: Sequence[Sequence[FractionPath]],
    predicted: Prediction | None,
    given: Vector | None = None,
    checkpoint: Checkpoint = lambda: None,
) -> FractionEstimate:
    """The estimate by paths, for each two-class problem those without each fold and last the one with all labels.

    More than two classes have ``given`` fractions. ``predicted`` is the fraction by a model that has none set.
    ``checkpoint`` is called once; what it raises ends the work.
    """
    grids, tried = (
        [several[-1].fractions for several in paths],
        [several[-1].fractions[several[-1].solved].tolist() for several in paths],
    )
    if given is not None:
        return FractionEstimate(
            given, np.column_stack([path_scores(several, data.folds)[0] for several in paths]), grids, tried, [], False
        )
    assert predicted is not None
    own, counts = paths[0], data.counts
    grid = fine_grid(own[-1].fractions)
    evidence = log_evidence_of(grid, own, data, predicted)
    checkpoint()
    sampled = counts.total > 0
    if counts.unknown_total:
        log_odds = log_evidence.sample_log_odds(grid, counts)
        sampled |= log_mean(evidence, log_odds) > 0
        evidence = evidence + log_evidence.from_counts(log_odds)
    posterior = posterior_of(grid, evidence)
    fractions = bounded_fractions(np.array([1 - posterior.mean, posterior.mean]), data.bounds)
    held_out = path_scores_at(own, data.folds, float(fractions[1]))[:, None]
    grounds = {
        "labeled": float(np.mean(data.problems[0].y > 0)),
        "predicted": predicted.fraction,
        "mean": posterior.mean,
        "deviation": float(np.sqrt(posterior.variance)),
    }
    return FractionEstimate(
        fractions,
        held_out,
        grids,
        tried,
        [grounds],
        sampled,
        guessed=(0, 1) if posterior.is_guess and data.bounds is None else (),
    )


def log_evidence_of(at: Vector, paths: Sequence[FractionPath], data: SelectionData, predicted: Prediction) -> Vector:
    """The sum of all sources but numbers of unknown origin at some fractions of two classes, both of shape (n,).

    A source that is not finite is left out.
    """
    full, solved, left_out, y = paths[-1], paths[-1].solved, data.left_out, data.problems[0].y
    fractions = full.fractions[solved]
    sources = [
        log_evidence.from_sample(at, data.counts),
        log_evidence.from_prediction(at, *predicted),
        interpolate(fractions, log_evidence.from_separation(fractions, full.objectives[solved]), at),
    ]
    if len(np.unique(y[left_out])) == 2:
        scores, labels = path_scores(paths, data.folds)[:, left_out], y[left_out]
        held_out = log_evidence.from_held_out(scores, labels)
        rates = log_evidence.rates_above(scores > path_thresholds(paths, data.folds)[:, left_out], labels)
        # rates are nearly linear between the fractions that were tried; the likelihood of many labels is a narrow peak,
        # which these may miss
        between = log_evidence.Rates(*(np.interp(logit(at), logit(fractions), each) for each in rates))
        likelihood, count = interpolate(fractions, held_out, at), log_evidence.from_adjusted_count(at, between)
        sources.append(log_evidence.likelihood_or_count(likelihood, count))
    return np.asarray(sum(source for source in sources if np.isfinite(source).all()))


def path_scores(paths: Sequence[FractionPath], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Held-out scores of each labeled row by the path without its fold, shape (n_solved, n_labeled).

    NaN where no fold leaves it out.
    """
    return _by_fold(paths, folds, lambda path: path.labeled, np.nan)


def path_thresholds(paths: Sequence[FractionPath], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The thresholds above which the paths without each fold have their fractions, shape (n_solved, n_labeled); 0 where
    no fold leaves it out.
    """
    return _by_fold(paths, folds, lambda path: path.thresholds[:, None], 0.0)


def _by_fold(
    paths: Sequence[FractionPath],
    folds: NDArray[np.int64],
    values: Callable[[FractionPath], NDArray[np.float64]],
    missing: float,
) -> NDArray[np.float64]:
    """``values`` of the path without the fold of each labeled row, shape (n_solved, n_labeled)."""
    solved = paths[-1].solved
    found = np.full_like(paths[-1].labeled[solved], missing)
    for fold, path in enumerate(paths[:-1]):
        found = np.where(folds == fold, values(path)[solved], found)
    return found


def path_scores_at(paths: Sequence[FractionPath], folds: NDArray[np.int64], fraction: float) -> Vector:
    """Held-out scores at a fraction, interpolated over the logits of those that were tried, shape (n_labeled,); of one
    that was, its scores.
    """
    scores, grid = path_scores(paths, folds), logit(paths[-1].fractions[paths[-1].solved])
    if len(grid) == 1:
        return np.asarray(scores[0])
    place = float(np.interp(logit_of(min(max(fraction, 1e-9), 1 - 1e-9)), grid, np.arange(len(grid))))
    low = min(int(place), len(grid) - 2)
    return np.asarray((low + 1 - place) * scores[low] + (place - low) * scores[low + 1])


_SUPERVISED = 0.05
"""share of the work that the supervised SVMs take"""
_OF_ANSWERS = 0.75
"""the same, where models are only asked for their answers"""
_ALONE = 0.5
"""agreement beyond chance that answers are taken to have where no second model applies"""
_LIKELY = 2.0
"""log-evidence below the largest by which a fraction at the end of those tried is likely enough to try further ones"""


def estimate_fractions(
    scheduler: Scheduler,
    data: SelectionData,
    span: Span,
    given: Vector | None = None,
    checkpoint: Checkpoint = lambda: None,
    *,
    held_out: bool = True,
) -> FractionEstimate:
    """Estimate the class fractions; if they are ``given``, shape (n_classes,), only the held-out scores are new.

    ``checkpoint`` is called for each two-class problem where no solver runs. Raises what it does, and Stopped.

    Of two classes transductive SVMs are solved along a grid of fractions: once with all labels, and once without those
    of each fold. core.selection.log_evidence says what evidence they give. The grid's ends are solved only where the
    evidence does not rule them out. Of more classes core.selection.answers has the estimate. Transductive SVMs are
    solved at it where scores of labels left out are wanted (``held_out``).
    """
    if given is not None:
        return _at(given, scheduler, data, span)
    if data.n_classes > 2:
        of_models = span.between(0.0, 2 * _SUPERVISED) if held_out else span
        estimate = _of_many_classes(scheduler, data, of_models, checkpoint)
        if not held_out:
            return estimate
        solved = _at(estimate.fractions, scheduler, data, span.between(2 * _SUPERVISED, 1.0))
        return replace(solved, grounds=estimate.grounds, counts_used=estimate.counts_used, guessed=estimate.guessed)
    supervised = _supervised(scheduler, data, span.between(0.0, _SUPERVISED))
    predicted = centred_prediction(
        supervised.scores[:, 0], supervised.held_out[:, 0], data.class_indices, data.balanced
    )
    grid = grid_around(grid_centre(predicted.fraction, data.counts))
    paths, _ = _solve_paths(scheduler, data, span.between(_SUPERVISED, 1.0), [grid], predicted)
    return combine_evidence(data, paths, predicted, None, checkpoint)


def _at(fractions: Vector, scheduler: Scheduler, data: SelectionData, span: Span) -> FractionEstimate:
    """Transductive SVMs at these class fractions; raises Stopped."""
    grids = [fractions[[positive]] for positive in data.positives]
    paths, starts = _solve_paths(scheduler, data, span, grids, None)
    return replace(combine_evidence(data, paths, None, fractions), starts=[] if data.dense else starts)


def _of_many_classes(scheduler: Scheduler, data: SelectionData, span: Span, checkpoint: Checkpoint) -> FractionEstimate:
    """The estimate of three classes and more, without scores; raises Stopped, and errors of ``checkpoint``."""
    supervised = _supervised(scheduler, data, span.between(0.0, _OF_ANSWERS))
    scores, n_classes = supervised.scores, data.n_classes
    if not (data.surplus.any() or data.balanced):
        scores = scores - midpoints(supervised.held_out, data.class_indices)
    own = labels_of(scores)
    other = _naive_bayes_labels(scheduler, data, span.between(_OF_ANSWERS, 1.0), checkpoint)
    answers = count_answers(own, own if other is None else other, n_classes, as_good=not data.dense)
    if other is None:
        answers = answers._replace(kappa=_ALONE, shared=np.zeros(n_classes))
    answers = answers._replace(chosen=np.bincount(data.class_indices[data.drawn == Draw.CHOSEN], minlength=n_classes))
    truth = data.class_indices[data.left_out]
    if len(np.unique(truth)) == n_classes:  # of classes with one label nothing is known
        answers = answers._replace(kappa=max(answers.kappa, judge(supervised.held_out[data.left_out], truth).gained))
    if data.balanced:  # otherwise models without the labels of a fold err otherwise than those with all
        answers = adjust_answers(answers, own, truth, labels_of(supervised.held_out[data.left_out]))
    posterior = posterior_of_classes(answers, *data.counts_by_origin)
    labeled = np.bincount(data.class_indices, minlength=n_classes) / len(data.class_indices)
    figures = np.column_stack([labeled, answers.fractions, posterior.means, posterior.deviations])
    grounds = [dict(zip(("labeled", "predicted", "mean", "deviation"), each, strict=True)) for each in figures.tolist()]
    open_to_guess = np.ones(n_classes, bool) if data.bounds is None else data.bounds[:, 0] < data.bounds[:, 1]
    guessed = () if posterior.sampled else np.flatnonzero(open_to_guess & (answers.shared < SHARED)).tolist()
    fractions = bounded_fractions(posterior.means, data.bounds)
    return FractionEstimate(fractions, np.zeros((0, 0)), [], [], grounds, posterior.sampled, guessed=guessed)


def _naive_bayes_labels(
    scheduler: Scheduler, data: SelectionData, span: Span, checkpoint: Checkpoint
) -> NDArray[np.intp] | None:
    """Classes of the unlabeled documents by naive Bayes, shape (n_unlabeled,); None where it does not apply.

    Of numbers, which may have other clusters than the classes, it knows the labeled ones alone.
    """
    if not (densities_apply(data.size) and (data.dense or data.are_bags)):
        return None
    run = NaiveBayesEM(data, Moments(data, checkpoint), data.n_folds, 0.0 if data.dense else 1.0)
    scheduler.run({Phase(): run.steps}, span)
    return labels_of(run.joint()[:, run.n_labeled :].T)


class _Supervised(NamedTuple):
    """Scores of the supervised SVM."""

    scores: NDArray[np.float64]
    """shape (n_unlabeled, n_problems)"""
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_problems)"""


def _supervised(scheduler: Scheduler, data: SelectionData, span: Span) -> _Supervised:
    """The supervised SVM's scores; raises Stopped. Of many classes it has as many labels of each, if it can be."""
    surplus = data.surplus & (data.n_classes > 2)
    options, n_problems = supervised_options(LAMBDA), len(data.problems)
    fits = {(column, fold): SupervisedFit() for column in range(n_problems) for fold in range(data.n_folds)}
    steps: dict[Phase, Callable[[], Steps]] = {
        phase.to("supervised"): partial(svm, without(problem, surplus), options)
        for phase, problem in zip(data.phases, data.problems, strict=True)
    }
    steps |= {
        data.phases[column].to("supervised", fold=fold): partial(
            fit.steps, data.problems[column], data.folds == fold, LAMBDA
        )
        for (column, fold), fit in fits.items()
    }
    supervised = scheduler.run(steps, span)[:n_problems]
    ensure_complete(supervised)
    return _Supervised(unlabeled_scores(supervised), held_out_scores(fits, data.folds, n_problems))


def _solve_paths(
    scheduler: Scheduler, data: SelectionData, span: Span, grids: Sequence[Vector], predicted: Prediction | None
) -> tuple[list[list[FractionPath]], list[Vector]]:
    """For each two-class problem the paths without each fold, and last the one with all labels; and a solution of the
    latter. Raises Stopped.

    The paths of a problem meet to decide how far they go. Of one fraction nothing is ``predicted``.
    """
    options = TsvmOptions(
        lambda_=LAMBDA,
        lambda_u=data.unlabeled_weight,
        tolerance=TOLERANCE if data.dense else SPARSE_TOLERANCE,
    )
    paths = [[FractionPath(grid) for _ in range(data.n_folds + 1)] for grid in grids]
    barriers = [Barrier(len(several), partial(_likely_ends, several, data, predicted)) for several in paths]
    steps: dict[Phase, Callable[[], Steps]] = {
        phase.to("fractions", fold=fold): partial(path.steps, problem, data.folds == fold, options, barrier)
        for phase, problem, several, barrier in zip(data.phases, data.problems, paths, barriers, strict=True)
        for fold, path in enumerate(several)
    }
    results = scheduler.run(steps, span)
    return paths, [coefficients_of(result) for result in results[data.n_folds :: data.n_folds + 1]]


def _likely_ends(paths: Sequence[FractionPath], data: SelectionData, predicted: Prediction | None) -> list[int]:
    """The positions of the grid next to the ends of the solved range that are nearly as likely as the likeliest
    fraction.
    """
    if predicted is None:
        return []
    grid, solved = paths[-1].fractions, paths[-1].solved
    evidence = log_evidence_of(grid[solved], paths, data, predicted)
    likely = evidence > evidence.max() - _LIKELY
    beside = [solved.start - 1] * bool(likely[0]) + [solved.stop] * bool(likely[-1])
    return [position for position in beside if 0 <= position < len(grid)]
