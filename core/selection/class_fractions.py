"""Class prior estimation (quantification): the class fractions of the unlabeled documents, from all evidence there
is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.engine.requests import Steps
from core.engine.runner import Scheduler
from core.numerics.elementary import Vector, logit
from core.one_vs_rest import labels_of, positives_of
from core.problem import ensure_complete, unlabeled_scores
from core.progress import Checkpoint, Phase, Span
from core.selection import log_evidence
from core.selection.answers import SHARED, adjust_answers, count_answers, posterior_of_classes
from core.selection.data import SelectionData
from core.selection.held_out import FoldFit, FoldScores, compared_svm, held_out_scores
from core.selection.naive_bayes_em import Moments, NaiveBayesEM
from core.selection.posterior import (
    RANDOM_LABELS,
    bounded_fractions,
    fine_grid,
    grid_around,
    grid_centre,
    log_mean,
    posterior_of,
)
from core.selection.prediction import Prediction, centred_prediction, judge, midpoints
from core.selection.registry import densities_apply
from core.validation.folds import without

LAMBDA = 3e-3
"""λ of the SVMs by which fractions are estimated, and of transductive ones, on rows of mean square norm 1"""
_NAMED = 10
"""classes that a warning names"""


@dataclass(frozen=True)
class FractionEstimate:
    """Class fractions and their grounds."""

    fractions: Vector
    """shape (n_classes,), summing to 1"""
    grounds: Sequence[dict[str, float]] = ()
    """for each two-class problem the fraction among the labels, the predicted one, and the posterior's mean and
    standard deviation; empty if the fractions were given"""
    counts_used: bool = False
    """whether the class counts of the labels were used as a random sample"""
    guessed: Sequence[int] = ()
    """classes whose fractions hang on a guess"""
    grid: Vector | None = None
    """of two classes the fractions at which scores are compared, ascending; None of more, and if they were given"""

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
    held_out: FoldScores,
    predicted: Prediction,
    tried: Vector,
    checkpoint: Checkpoint = lambda: None,
) -> FractionEstimate:
    """The estimate of two classes by a method: the fraction that it predicts, and its scores of labels left out at the
    fractions that are ``tried``.

    ``checkpoint`` is called once; what it raises ends the work.
    """
    counts, grid = data.counts, fine_grid(tried)
    evidence = _log_evidence(grid, tried, held_out, data, predicted)
    checkpoint()
    sampled = counts.total > 0
    if counts.unknown_total:
        log_odds = log_evidence.sample_log_odds(grid, counts)
        sampled |= log_mean(evidence, log_odds) > 0
        evidence = evidence + log_evidence.from_counts(log_odds)
    posterior = posterior_of(grid, evidence)
    grounds = {
        "labeled": float(np.mean(data.problems[0].y > 0)),
        "predicted": predicted.fraction,
        "mean": posterior.mean,
        "deviation": float(np.sqrt(posterior.variance)),
    }
    return FractionEstimate(
        bounded_fractions(np.array([1 - posterior.mean, posterior.mean]), data.bounds),
        [grounds],
        sampled,
        (0, 1) if posterior.is_guess and data.bounds is None else (),
        tried,
    )


def _log_evidence(
    at: Vector, tried: Vector, held_out: FoldScores, data: SelectionData, predicted: Prediction
) -> Vector:
    """The sum of all sources but numbers of unknown origin at some fractions of two classes, shape (n,). Scores are
    compared at those that are ``tried``, and their evidence lies between. A source that is not finite is left out.
    """
    left_out, y = data.left_out, data.problems[0].y
    sources = [log_evidence.from_sample(at, data.counts), log_evidence.from_prediction(at, *predicted)]
    if len(np.unique(y[left_out])) == 2:
        scores, labels = held_out.at(tried, data.folds)[:, left_out], y[left_out]
        curves = (log_evidence.from_held_out(scores, labels), *log_evidence.rates_above(scores > 0, labels))
        # rates are nearly linear between the fractions that were tried; the likelihood of many labels is a narrow peak,
        # which these may miss
        likelihood, *rates = (np.interp(logit(at), logit(tried), each) for each in curves)
        count = log_evidence.from_adjusted_count(at, log_evidence.Rates(*rates))
        sources.append(log_evidence.likelihood_or_count(likelihood, count))
    return np.asarray(sum(source for source in sources if np.isfinite(source).all()))


_OF_ANSWERS = 0.75
"""share of the work that the supervised SVMs take"""
_ALONE = 0.5
"""agreement beyond chance that answers are taken to have where no second model applies"""


def estimate_fractions(
    scheduler: Scheduler, data: SelectionData, span: Span, checkpoint: Checkpoint = lambda: None
) -> FractionEstimate:
    """Estimate the class fractions by the supervised SVM, and of three classes and more by naive Bayes, too.

    Of two classes core.selection.log_evidence says what evidence labels left out give, of more core.selection.answers
    has the estimate. ``checkpoint`` is called where no solver runs. Raises what it does, and Stopped.
    """
    if data.n_classes > 2:
        return _of_many_classes(scheduler, data, span, checkpoint)
    found = _supervised(scheduler, data, span)
    held_out = found.held_out[:, 0]
    predicted = centred_prediction(found.scores[:, 0], held_out, data.class_indices, data.balanced)
    grid = grid_around(grid_centre(predicted.fraction, data.counts))
    return combine_evidence(data, FoldScores(held_out, found.unlabeled), predicted, grid, checkpoint)


def _of_many_classes(scheduler: Scheduler, data: SelectionData, span: Span, checkpoint: Checkpoint) -> FractionEstimate:
    """The estimate of three classes and more, without scores; raises Stopped, and errors of ``checkpoint``."""
    found = _supervised(scheduler, data, span.between(0.0, _OF_ANSWERS))
    scores, n_classes = found.scores, data.n_classes
    if not (data.surplus.any() or data.balanced):
        scores = scores - midpoints(found.held_out, data.class_indices)
    own = labels_of(scores)
    other = _naive_bayes_labels(scheduler, data, span.between(_OF_ANSWERS, 1.0), checkpoint)
    answers = count_answers(own, own if other is None else other, n_classes, as_good=not data.dense)
    if other is None:
        answers = answers._replace(kappa=_ALONE, shared=np.zeros(n_classes))
    answers = answers._replace(chosen=np.bincount(data.class_indices[data.drawn == Draw.CHOSEN], minlength=n_classes))
    truth = data.class_indices[data.left_out]
    if len(np.unique(truth)) == n_classes:  # of classes with one label nothing is known
        answers = answers._replace(kappa=max(answers.kappa, judge(found.held_out[data.left_out], truth).gained))
    if data.balanced:  # otherwise models without the labels of a fold err otherwise than those with all
        answers = adjust_answers(answers, own, truth, labels_of(found.held_out[data.left_out]))
    posterior = posterior_of_classes(answers, *data.counts_by_origin)
    labeled = np.bincount(data.class_indices, minlength=n_classes) / len(data.class_indices)
    figures = np.column_stack([labeled, answers.fractions, posterior.means, posterior.deviations])
    grounds = [dict(zip(("labeled", "predicted", "mean", "deviation"), each, strict=True)) for each in figures.tolist()]
    open_to_guess = np.ones(n_classes, bool) if data.bounds is None else data.bounds[:, 0] < data.bounds[:, 1]
    guessed = () if posterior.sampled else np.flatnonzero(open_to_guess & (answers.shared < SHARED)).tolist()
    fractions = bounded_fractions(posterior.means, data.bounds)
    return FractionEstimate(fractions, grounds, posterior.sampled, guessed)


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
    unlabeled: Sequence[Vector]
    """of two classes the scores without the labels of each fold, shape (n_unlabeled,)"""


def _supervised(scheduler: Scheduler, data: SelectionData, span: Span) -> _Supervised:
    """The supervised SVM's scores; raises Stopped. Of many classes it has as many labels of each, if it can be."""
    surplus = data.surplus & (data.n_classes > 2)
    n_problems, solver = len(data.problems), partial(compared_svm, lambda_=LAMBDA)
    fits = {
        (column, fold): FoldFit(keeps_unlabeled=n_problems == 1)
        for column in range(n_problems)
        for fold in range(data.n_folds)
    }
    steps: dict[Phase, Callable[[], Steps]] = {
        phase.to("supervised"): partial(solver, without(problem, surplus))
        for phase, problem in zip(data.phases, data.problems, strict=True)
    }
    steps |= {
        data.phases[column].to("supervised", fold=fold): partial(
            fit.steps, data.problems[column], data.folds == fold, solver
        )
        for (column, fold), fit in fits.items()
    }
    found = scheduler.run(steps, span)[:n_problems]
    ensure_complete(found)
    return _Supervised(
        unlabeled_scores(found),
        held_out_scores(fits, data.folds, n_problems),
        [fit.unlabeled for fit in fits.values()],
    )
