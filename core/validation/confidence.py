"""How far a model can be trusted, by labels that were left out: whether it is right more often than chance.

Chance has the model's own habits: it calls as many documents each class, whichever documents these are.
"""

from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.numerics.binomial import LEVEL, QUANTILE, binomial_tail, wilson_interval
from core.validation.calibration import Calibration

Level = Literal["high", "low", "none"]

_ENOUGH = 10
"""labels left out that are not chosen, from which on these alone are looked at"""


class Confidence(NamedTuple):
    """How many labels left out were predicted right, and how many chance would get right."""

    total: int
    """labels that were left out and predicted"""
    right: int
    """those that were predicted right"""
    by_chance: float
    """share of them that chance gets right"""
    likelier: bool = True
    """whether the labels are likelier by the predictions than if all classes were as likely"""
    likeliest: float = 0.0
    """share of the labels that are of the likeliest class: who always said it would be right so often"""
    by_votes: bool = False
    """whether these are labels by votes, as too few are certain"""

    @classmethod
    def of(
        cls, predicted: NDArray[np.integer[Any]], class_indices: NDArray[np.integer[Any]], likelier: bool = True
    ) -> Self:
        """By the classes that were predicted and the true ones, both of shape (n,)."""
        total = len(class_indices)
        if not total:
            return cls(0, 0, 1.0, likelier)
        n_classes = int(max(predicted.max(), class_indices.max())) + 1
        shares = [np.bincount(each, minlength=n_classes) / total for each in (predicted, class_indices)]
        right, by_chance = int(np.count_nonzero(predicted == class_indices)), float((shares[0] * shares[1]).sum())
        return cls(total, right, by_chance, likelier, float(shares[1].max()))

    @property
    def level(self) -> Level:
        """Level of confidence, by tests at 5 %.

        ``high``: the model makes at most half as many mistakes as chance. ``none``: chance explains its right answers,
        even classes explain the labels as well as it does, or no label could be left out. ``low``: all between.
        """
        if not self.likelier or self.explained_by_chance:
            return "none"
        return "high" if self.least_accuracy >= (1 + self.by_chance) / 2 else "low"

    @property
    def explained_by_chance(self) -> bool:
        """Whether so many may be right by chance."""
        return binomial_tail(self.right, self.total, self.by_chance) >= LEVEL

    @property
    def least_accuracy(self) -> float:
        """Lower end of Wilson's interval of the share that is right, one-sided, 95 %; 0 without labels."""
        return wilson_interval(self.right / max(1, self.total), self.total, QUANTILE)[0]

    def report(self) -> dict[str, Any]:
        """The verdict, for the report of a training."""
        return {"confidence": self.level, "summary": [self.sentence()]}

    def sentence(self) -> str:
        """For people."""
        if not self.total:
            return "no label could be left out to see whether the model is right: every class needs at least two"
        found = (
            f"of {self.total} labels {'by votes ' * self.by_votes}that were left out, {self.right} were predicted "
            f"right; chance gets {self.by_chance * self.total:.0f} right"
        )
        match self.level:
            case "high":
                return f"{found}. The model can be trusted{' as far as the votes' * self.by_votes}"
            case "low":
                return f"{found}. The model knows something, and more labels will help"
        advice = "label more documents before its predictions are used"
        if self.explained_by_chance:
            return f"{found}. The model cannot be told from chance: {advice}"
        return f"{found}, but it is as sure where it is wrong. In all the model cannot be told from chance: {advice}"


class Validated(NamedTuple):
    """The outcome of cross-validation."""

    calibration: Calibration
    held_out: NDArray[np.float64]
    """shape (n_labeled, n_columns), scores of the labeled rows by models without their labels; NaN where no fold leaves
    the row out"""
    likelier: bool = True
    """whether the labels left out are likelier than if all classes were as likely"""

    def confidence(self, class_indices: NDArray[np.integer[Any]], drawn: NDArray[np.int8]) -> Confidence:
        """The verdict of labels left out on the model, by their classes and by how they were drawn
        (core.documents.drawn), both of shape (n_labeled,).

        Documents that were chosen are harder than others, since a model was unsure of them. Those that were found by
        their class are easier. Both are left aside where enough others are left out.
        """
        known = np.isfinite(self.held_out).all(axis=1)
        plain = known & ~np.isin(drawn, (Draw.CHOSEN, Draw.FOUND))
        if np.count_nonzero(plain) >= _ENOUGH and len(np.unique(class_indices[plain])) > 1:
            known = plain
        predicted = self.calibration.probabilities(self.held_out[known]).argmax(axis=1)
        return Confidence.of(predicted, class_indices[known], self.likelier)
