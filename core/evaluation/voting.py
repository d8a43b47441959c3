"""Votes beside the probabilities of a model: what they say of documents, and what a voter's next answers are worth.

How right voters are is what the training on votes has found out (core.weak_supervision).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.votes import Votes
from core.numerics.elementary import Matrix, Vector, log, softmax

UNKNOWN = {"right": 0.7, "low": 0.0, "high": 1.0}
"""how often a voter is right of whom nothing is known"""
_LEAST = 1e-6


@dataclass(frozen=True)
class VoterRates:
    """How often the votes of each voter are right, by the report of a training."""

    classes: Sequence[str | int]
    voters: Mapping[str, Mapping[str, Any]]
    """the report on each voter"""
    fractions: Vector
    """shape (n_classes,): class fractions"""

    @classmethod
    def of(cls, classes: Sequence[str | int], report: Mapping[str, Any] | None) -> "VoterRates":
        """The rates by a report; without class fractions all classes are as common."""
        report = report or {}
        known = report.get("class_fractions") or {}
        found = np.array([known.get(str(label)) or 1 / len(classes) for label in classes], np.float64)
        return cls(classes, report.get("voters") or {}, np.clip(found / found.sum(), _LEAST, 1 - _LEAST))

    def rates(self, voter: str) -> list[Mapping[str, float]]:
        """How right a voter's votes for each class are: ``right``, ``low`` and ``high``."""
        own = self.voters.get(voter, UNKNOWN)
        return [own.get("classes", {}).get(str(label), own) for label in self.classes]

    def right(self, voter: str) -> Vector:
        """shape (n_classes,): how often a voter's vote for each class is right, neither always nor never."""
        return np.clip([each["right"] for each in self.rates(voter)], _LEAST, 1 - _LEAST)

    def told(self, probabilities: Matrix, votes: Votes) -> Matrix:
        """The probabilities of documents, shape (n_rows, n_classes), once their votes are heard, too.

        A vote for a class makes it likelier by the voter's precision beside the class fraction. Voters who copy each
        other share one voice. Votes for classes that the model does not have say nothing.
        """
        place = {label: number for number, label in enumerate(self.classes)}
        of_class = np.array([*(place.get(label, -1) for label in votes.classes), -1])[votes.class_index]
        known = of_class >= 0
        own, owner, voter = of_class[known], votes.owners[known], votes.voter[known]
        if not len(own):
            return probabilities
        shared = [1 + sum(self.voters.get(name, {}).get("copies", {}).values()) for name in votes.voters]
        right = np.stack([self.right(name) for name in votes.voters])[voter, own]
        fraction, said = self.fractions[own], votes.probability[known]
        rows = np.arange(len(own))
        factors = np.tile(((1 - right) / (1 - fraction))[:, None], (1, len(self.classes)))
        factors[rows, own] = right / fraction
        evidence = log(said[:, None] * factors + 1 - said[:, None]) / np.array(shared)[voter][:, None]
        logits = log(np.maximum(probabilities, _LEAST))
        np.add.at(logits, owner, evidence)
        return softmax(logits)

    def worth(self, voter: str, second: NDArray[np.integer[Any]], likely: Vector, next: Vector) -> Vector:
        """Documents that one more answer of a voter sets right in the mean, shape (n,); below 0 where it cannot change
        the label.

        ``second`` is the second likeliest class of each document; ``likely`` and ``next`` are the probabilities of the
        likeliest and of that one. The answer changes the label if it names the second class: rightly where that is the
        true one, wrongly as often as the voter takes the first for it. Source: expected value of sample information,
        Raiffa & Schlaifer, Applied statistical decision theory, 1961, chapter 4.
        """
        right, fraction = self.right(voter)[second], self.fractions[second]
        return np.asarray(next * right - likely * (1 - right) * fraction / (1 - fraction))
