"""Semi-supervised naive Bayes, fitted by EM (Nigam et al. 2000). Documents are bags of terms, or rows of numbers that
are normal in each class.

Few labels start it. The unlabeled documents show which features go together and how large the classes are: of short
texts, and of numbers of which each class is a cluster, it finds both better than a margin does. Numbers may have other
clusters, which mislead it. So of these it is tried with unlabeled documents that count as much as labeled ones, less,
and nothing: labels left out say which. Of texts they always count.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.engine.requests import Steps, known_result
from core.engine.runner import Scheduler
from core.numerics.compiled import exp, log
from core.numerics.elementary import Matrix, Vector
from core.one_vs_rest import n_problems
from core.problem import Linear, Result
from core.progress import Checkpoint, Phase, Span
from core.selection.candidates import Candidate, ModelSpec, Solvers, Trial, judged
from core.selection.data import SelectionData
from core.selection.held_out import FoldScores
from core.selection.naive_bayes_em import Moments, NaiveBayesEM
from core.selection.prediction import Judgement, Prediction, judge, midpoint
from core.selection.registry import Method
from core.validation.calibration import SLOPE, iterative_proportional_fitting

_TIMES = (math.inf, 2.0, 0.0)
"""how many times as much as all labeled documents those without a label count together, though none more than a labeled
one: what is tried of rows of numbers"""
_LEAST_GAIN = 0.08
"""share of what labels left out lose by chance that unlabeled rows of numbers must save, or they do not count"""
_OTHER_CLUSTERS = 0.5
"""probability that the clusters of the documents are not the classes, beforehand: the fraction that they show then says
nothing"""
_LEAST = 1e-300


def weights_of(data: SelectionData) -> list[float]:
    """The weights of an unlabeled document that are tried, the largest first."""
    if not data.dense:
        return [1.0]
    share = len(data.class_indices) / max(1, data.problems[0].n_unlabeled)
    return list(dict.fromkeys(min(1.0, times * share) for times in _TIMES))


class _HeldOutRuns(NamedTuple):
    """Runs without the labels of each fold."""

    weight: float
    """that of an unlabeled document"""
    margins: Matrix
    """shape (n_labeled, n_problems): held-out log-odds of a class against all others"""
    columns: Matrix
    """the same of a model's columns"""
    unlabeled: list[Vector]
    """of two classes the log-odds of the unlabeled rows by each run"""
    judgement: Judgement
    """what labels left out say of it"""

    @property
    def merit(self) -> float:
        """The log-likelihood of labels left out, less the gain that unlabeled rows must bring to count."""
        return self.judgement.log_likelihood + (_LEAST_GAIN * self.judgement.chance if self.weight else 0.0)

    @classmethod
    def of(
        cls,
        scheduler: Scheduler,
        data: SelectionData,
        moments: Moments,
        weight: float,
        span: Span,
        checkpoint: Checkpoint,
    ) -> Self:
        """Run without each fold; raises Stopped."""
        n_labeled, unlabeled, sizes = len(data.class_indices), list[Vector](), np.zeros(len(data.problems))
        margins, columns = np.full((n_labeled, len(sizes)), np.nan), np.full((n_labeled, len(sizes)), np.nan)
        for fold, own in enumerate(span.equal(data.n_folds)):
            run = NaiveBayesEM(data, moments, fold, weight)
            scheduler.run(
                {Phase().to("naive_bayes/weight", weight, fold=fold): run.steps},
                own,
            )
            joint = run.joint()
            odds = _log_odds(joint, data.positives, checkpoint)
            sizes += _sizes(odds[n_labeled:]) / data.n_folds
            if data.n_classes == 2:
                unlabeled.append(odds[n_labeled:, 0])
            hidden = data.folds == fold
            margins[hidden] = odds[:n_labeled][hidden]
            labeled = joint[:, :n_labeled]
            total = labeled.sum(axis=0)
            columns[hidden] = np.column_stack([_column(labeled, total, each) for each in data.positives])[hidden]
            checkpoint()
        known = data.left_out
        judgement = judge(margins[known] / np.maximum(sizes, _LEAST), data.class_indices[known], data.weights[known])
        return cls(weight, margins, columns, unlabeled, judgement)


@dataclass(frozen=True)
class NaiveBayes:
    """Naive Bayes fitted with all labels, and its held-out scores."""

    em: NaiveBayesEM
    """run with all labels"""
    size: float
    """mean size of the log-odds of a class against the others, over classes and unlabeled rows; scores of models are
    divided by it"""
    predicted: Prediction
    """prediction for the unlabeled rows of two classes"""
    of_two: FoldScores
    """of two classes the log-odds without each fold, of mean size 1"""
    columns: Matrix
    """shape (n_labeled, n_problems): held-out scores of a model's columns"""
    margins: Matrix
    """shape (n_labeled, n_problems): held-out log-odds of a class against all others, of mean size 1 for each class"""
    weight: float
    """that of an unlabeled document"""
    checkpoint: Checkpoint

    @classmethod
    def of(
        cls,
        scheduler: Scheduler,
        data: SelectionData,
        span: Span,
        checkpoint: Checkpoint,
    ) -> Self:
        """Fit without each fold and with all labels; raises Stopped."""
        moments, weights = Moments(data, checkpoint), weights_of(data)
        works = [data.n_folds] * len(weights) + [1]
        parts = [span.between(*ends) for ends in pairwise((np.cumsum([0, *works]) / sum(works)).tolist())]
        best = max(
            (
                _HeldOutRuns.of(scheduler, data, moments, weight, own, checkpoint)
                for weight, own in zip(weights, parts[:-1], strict=True)
            ),
            key=lambda each: each.merit,  # of equals the first: where no label can be left out, unlabeled rows count
        )
        run = NaiveBayesEM(data, moments, data.n_folds, best.weight)
        scheduler.run({Phase(): run.steps}, parts[-1])
        sizes = _sizes(_log_odds(run.joint()[:, run.n_labeled :], data.positives, checkpoint))
        margins, common = best.margins / sizes, float(sizes.mean())
        # unlabeled documents may have other clusters than the classes: then labels left out are hardly told apart
        middle = midpoint(best.margins[:, 0], data.class_indices, data.positives[0])
        return cls(
            run,
            common,
            Prediction(float(run.priors[-1]), middle.error(data.balanced), _OTHER_CLUSTERS),
            FoldScores(margins[:, 0], [scores / sizes[0] for scores in best.unlabeled]),
            best.columns / common,
            margins,
            best.weight,
            checkpoint,
        )

    def fitted_to(self, scheduler: Scheduler, data: SelectionData, span: Span) -> Self:
        """This model, fitted with all labels to all features of these data; itself if it has seen them all.

        Raises Stopped.
        """
        if self.em.coefficients.shape[1] == data.scaled.rows.n_features + 1:
            return self
        run = NaiveBayesEM(data, Moments(data, self.checkpoint), data.n_folds, self.weight)
        scheduler.run({Phase(): run.steps}, span)
        odds = _log_odds(run.joint()[:, run.n_labeled :], data.positives, self.checkpoint)
        return replace(self, em=run, size=float(_sizes(odds).mean()))

    def intercepts(self, fractions: Vector) -> Vector:
        """Intercepts of the classes' logits, shape (n_classes,), with which responsibilities have the means
        ``fractions``.

        The responsibilities are those of logits scaled to be as sure as margins are. Its own are sure of nearly every
        document, so that the fraction of a class would hardly move with an intercept.
        """
        scale = SLOPE / self.size
        likelihoods = scale * self.em.logits[:, self.em.n_labeled :].T
        likelihoods -= likelihoods.max(axis=1, keepdims=True)
        return np.asarray(log(iterative_proportional_fitting(exp(likelihoods), fractions, self.checkpoint)) / scale)

    def steps(self, positive: int, intercepts: Vector) -> Steps:
        """The model of one two-class problem, that class against the others, with the intercepts of all classes.
        Nothing is left to solve.

        Objective: that of NaiveBayesEM, shared evenly by the problems.
        """
        run = self.em
        objective = run.objective / n_problems(len(run.coefficients))
        coefficients = _column(run.coefficients, run.total_coefficients, positive) / self.size
        intercept = float(_column(intercepts, intercepts.sum(axis=0), positive)) / self.size
        scores = _column(run.logits, run.total_logits, positive)[run.n_labeled :] / self.size + intercept
        decision = Linear(coefficients[:-1], intercept + float(coefficients[-1]))
        return known_result(Result(decision, scores, objective, run.status), Phase("naive_bayes"))


def _log_odds(joint: Matrix, positives: Sequence[int], checkpoint: Checkpoint) -> Matrix:
    """Log-odds of classes against all others, shape (n, n_positives), by the logarithms of the joint densities, shape
    (n_classes, n).

    Of many classes the densities of the others are the sum of all less the class's own, relative to the largest of the
    row. Of the class that is the largest itself nothing might be left of that sum: there the others are added anew.
    """
    if len(joint) == 2:
        return np.column_stack([joint[each] - joint[1 - each] for each in positives])
    rows, likeliest = np.arange(joint.shape[1]), joint.argmax(axis=0)
    largest = joint[likeliest, rows]
    shares = exp(joint - largest)
    total = shares.sum(axis=0)
    checkpoint()
    others = joint.copy()
    others[likeliest, rows] = -np.inf
    second = others.max(axis=0)
    second += log(exp(others - second).sum(axis=0))
    checkpoint()
    odds = np.empty((joint.shape[1], len(positives)))
    for column, each in enumerate(positives):
        own = likeliest == each
        odds[:, column] = joint[each] - np.where(own, second, largest + log(np.where(own, 1.0, total - shares[each])))
        checkpoint()
    return odds


def _sizes(log_odds: Matrix) -> Vector:
    """Mean sizes of log-odds, shape (n, n_positives), over the rows; shape (n_positives,)."""
    return np.asarray(np.maximum(np.abs(log_odds).mean(axis=0), _LEAST))


def _column(of_classes: NDArray[np.float64], total: NDArray[np.float64], positive: int) -> NDArray[np.float64]:
    """A class's value less the mean of the others, shape (n,): linear, and largest for the class with the largest
    value.

    ``of_classes`` have the shape (n_classes, n), and ``total``, shape (n,), is their sum; or (n_classes,) of a single
    value.
    """
    if len(of_classes) == 2:
        return np.asarray(of_classes[positive] - of_classes[1 - positive])
    return np.asarray(of_classes[positive] - (total - of_classes[positive]) / (len(of_classes) - 1))


def try_naive_bayes(method: Method, trial: Trial) -> Candidate | None:
    """Naive Bayes of the frequent features, of bags of terms or of rows of numbers; raises Stopped.

    It is judged by the log-odds of a class against all others, which are not the scores of its model.
    """
    if not (trial.data.dense or trial.data.are_bags):
        return None
    data = trial.frequent
    fitted = NaiveBayes.of(trial.scheduler, data, trial.span, trial.watch)

    def solvers(spec: ModelSpec) -> Solvers:
        assert spec.fractions is not None
        whole = fitted.fitted_to(spec.scheduler, spec.data, spec.span)
        intercepts = whole.intercepts(spec.fractions)
        return [partial(whole.steps, positive, intercepts) for positive in spec.data.positives]

    own, judgement = trial.estimate(fitted.of_two, fitted.predicted), judged(data, fitted.margins)
    tried = {"unlabeled_weights": weights_of(data), "best_unlabeled_weight": fitted.weight}
    return Candidate(method.key, method.title, fitted.columns, judgement, solvers, tried, found=own, generative=True)
