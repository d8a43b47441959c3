"""Class prior estimation (quantification): the class fractions of the unlabeled documents, from all evidence there
is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.engine.runner import Vector
from core.numerics.elementary import logit, logit_of
from core.one_vs_rest import positives_of
from core.progress import Checkpoint
from core.selection import log_evidence
from core.selection.data import SelectionData
from core.selection.fraction_path import (
    FractionPath,
)
from core.selection.posterior import fine_grid, interpolate, log_mean, posterior_of, within
from core.selection.prediction import Prediction

LAMBDA = 3e-3
"""λ of the solutions by which fractions are compared, on rows of mean square norm 1"""


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
    """for each two-class problem coefficients, shape (n_features + 1,), the bias last, of a solution with all labels
    near these fractions, from which others can start; none of methods that have none"""
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
    fractions = within(np.array([1 - posterior.mean, posterior.mean]), data.bounds)
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
        trust = log_evidence.trust_in_count(scores, labels)
        held_out = log_evidence.from_held_out(scores, labels)
        rates = log_evidence.rates_above(scores > path_thresholds(paths, data.folds)[:, left_out], labels)
        # rates are nearly linear between the fractions that were tried; the likelihood of many labels is a narrow peak,
        # which these may miss
        between = log_evidence.Rates(*(np.interp(logit(at), logit(fractions), each) for each in rates))
        sources.append(
            interpolate(fractions, (1 - trust) * held_out, at) + trust * log_evidence.from_adjusted_count(at, between)
        )
    return np.asarray(sum(source for source in sources if np.isfinite(source).all()))


def path_scores(paths: Sequence[FractionPath], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """Held-out scores of each labeled row by the path without its fold, shape (n_solved, n_labeled).

    NaN where no fold leaves it out.
    """
    solved = paths[-1].solved
    scores = np.full_like(paths[-1].labeled[solved], np.nan)
    for fold, path in enumerate(paths[:-1]):
        scores[:, folds == fold] = path.labeled[solved][:, folds == fold]
    return scores


def path_thresholds(paths: Sequence[FractionPath], folds: NDArray[np.int64]) -> NDArray[np.float64]:
    """The thresholds above which the paths without each fold have their fractions, shape (n_solved, n_labeled); 0 where
    no fold leaves it out.
    """
    solved = paths[-1].solved
    thresholds = np.zeros_like(paths[-1].labeled[solved])
    for fold, path in enumerate(paths[:-1]):
        thresholds[:, folds == fold] = path.thresholds[solved][:, None]
    return thresholds


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
