"""Positive and unlabeled learning: labels of one class, and documents of which some are of it, too."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from core.documents.votes import Votes, checked_weights
from core.numerics.elementary import Vector, log
from core.options.auto import AutoOptions
from core.problem import Status
from core.task import Run, SingleTask, Training, TrainingTask
from core.validation.calibration import Calibration, fit_sigmoid
from core.weak_supervision.derived import Derived
from core.weak_supervision.voters import Ballots, VoterModel

_MEDIAN = 0.8275735551899077
"""median of Kolmogorov's distribution: the largest error of an empirical distribution of n numbers, times √n"""
_SURE = 1.3580986393225505
"""the same at the end of 95 %"""
_FRACTIONS = ("class_fractions", "positive_fraction", "labels_drawn")
_LEAST = 1e-12
_ASSUMED = (
    "the share of the class rests on its labels being chosen at random among their kind; the other class has no label, "
    "so nothing was left out that says how right the model is: an audit does"
)


class Share(NamedTuple):
    """The share of a class among documents that have no label."""

    share: float
    low: float
    high: float
    """ends of an interval of 95 %, if the labels were chosen at random among their kind; the lower one is far down,
    since the share is too large where documents of the other class pass the threshold"""


def share_above(positive: Vector, unlabeled: Vector) -> Share:
    """The share of positive documents among unlabeled ones by held-out scores of both, shapes (n_positive,) and
    (n_unlabeled,).

    Best bin estimation: above a threshold that hardly any negative document passes, the share of the unlabeled ones
    that do is to that of the positive ones as the share of positive documents is to 1. The threshold is that of the
    least upper bound. The lower end of the interval is the least of that threshold and of higher ones that a third of
    the positive documents pass, as fewer negative ones pass these. Source: Garg, Wu, Smola, Balakrishnan & Lipton,
    Mixture proportion estimation and PU learning, 2021, Algorithm 1; with the median error of distributions in place of
    a bound that is hardly ever passed, which is far too wide for some ten labels.
    """
    thresholds, n_positive = np.sort(positive)[::-1], len(positive)
    passed = np.arange(1.0, n_positive + 1.0) / n_positive
    found = 1.0 - np.searchsorted(np.sort(unlabeled), thresholds, side="left") / len(unlabeled)
    bound = _MEDIAN * (1 / math.sqrt(n_positive) + 1 / math.sqrt(len(unlabeled)))
    best = int(np.argmin((found + bound) / passed))
    error, other_error = (_SURE / math.sqrt(n) for n in (n_positive, len(unlabeled)))
    above, below = float(found[best]), float(passed[best])
    pure = slice(min(best, n_positive // 3), best + 1)
    return Share(
        min(1.0, above / below),
        float((np.maximum(0.0, found[pure] - other_error) / np.minimum(1.0, passed[pure] + error)).min()),
        min(1.0, (above + other_error) / max(_LEAST, below - error)),
    )


@dataclass(frozen=True)
class OneClass(Derived):
    """Labels of one class, and all other documents as the other class until its share is known."""

    label: str | int
    """class that is labeled"""
    told: float | None
    """its share among the documents without a label, if that is told"""
    votes: Votes | None
    """for the class, about the documents without a label"""

    @classmethod
    def of(cls, task: TrainingTask, classes: Sequence[str | int], run: Run) -> "OneClass":
        """The task with two classes, of which one is labeled."""
        labeled = SingleTask.labeled(task)
        label = task.classes[int(task.class_indices[labeled][0])]
        given = AutoOptions.parse(task.options).class_fractions
        told = given.get(str(label)) if isinstance(given, dict) else None
        place = classes.index(label)
        weights = np.where(labeled, checked_weights(task.weights, task.rows.n_rows), 1.0)
        weights[labeled] *= np.count_nonzero(~labeled) / weights[labeled].sum()  # both sides weigh the same
        options = {name: value for name, value in task.options.items() if name not in _FRACTIONS}
        taken = replace(
            task,
            class_indices=np.where(labeled, place, 1 - place),
            classes=classes,
            weights=weights,
            drawn=None,
            options=options,
            other=None,
            votes=None,
        )
        votes = None if task.votes is None else task.votes.among(classes).taken(np.flatnonzero(~labeled))
        return cls(taken, labeled, {}, [_ASSUMED], label, told if isinstance(told, float) else None, votes)

    def answered(self, trained: Training) -> Training:
        """See Derived: documents without a label have the scores of models that did not know them, and the threshold
        gives so many the class as its share says. Votes for the class are heard beside these scores, which say how
        right voters are: labels of one class do not.
        """
        if trained.held_out is None or trained.status is Status.CANCELLED:
            return trained
        positive = trained.model.classes[1] == self.label
        held_out = trained.held_out[:, 0] if positive else -trained.held_out[:, 0]
        labeled, unlabeled = held_out[self.certain], held_out[~self.certain]
        labeled = labeled[np.isfinite(labeled)]
        found = share_above(labeled, unlabeled)
        share = found.share if self.told is None else self.told
        threshold = float(np.quantile(unlabeled, 1.0 - share))
        negative = unlabeled[unlabeled < threshold]
        slope, _ = fit_sigmoid(
            np.concatenate([labeled, negative]), np.arange(len(labeled) + len(negative)) < len(labeled)
        )
        offset = -slope * threshold if positive else slope * threshold
        model = replace(trained.model, calibration=Calibration(np.array([slope]), np.array([offset]), np.ones(2)))
        scores = trained.held_out[~self.certain]
        fractions = {str(each): share if each == self.label else 1.0 - share for each in model.classes}
        about = (
            f"about {100 * found.share:.0f} of 100 documents without a label are {self.label!r}, likely "
            f"{100 * found.low:.0f} to {100 * found.high:.0f}"
        )
        probabilities, voters = model.calibrated_probabilities(scores), dict[str, Any]()
        if self.votes is not None:
            # fitted once, in which the model, which has not heard the votes, is the judge
            shares, unknown = np.array([*fractions.values()]), np.zeros(len(scores), bool)
            heard = VoterModel.of(Ballots.of(self.votes), probabilities, unknown, shares)
            probabilities = heard.posteriors(log(np.maximum(probabilities, _LEAST)))
            voters = {"voters": heard.report(self.votes, probabilities)}
        return replace(
            trained,
            model=model,
            scores=scores,
            probabilities=probabilities,
            held_out=None,
            confidence=None,
            warnings=self.warnings,
            report={name: value for name, value in (trained.report or {}).items() if name != "confidence"}
            | {
                "summary": [about] if self.told is None else [],
                "share": found._asdict(),
                "class_fractions": fractions,
            }
            | voters,
        )
