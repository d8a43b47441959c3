"""Agreement of people beyond chance, and votes beside the probabilities of a model: what they say of documents, and
what a voter's next answers are worth.

How right voters are is what the training on votes has found out (core.weak_supervision).
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.votes import Votes
from core.numerics.binomial import QUANTILE_OF_BOTH, wilson_interval
from core.numerics.elementary import Matrix, Vector, exp, log, softmax

_ROUNDS = 20
_RIGHT, _RIGHT_LABELS = 0.7, 2
"""how often a person is right of whom nothing is known, and the documents that this is worth"""
_SURE = 0.95
"""how often who is sure may be right, by the upper end of the interval"""


def cohen(labels: Sequence[tuple[Hashable, Hashable]]) -> float | None:
    """Cohen's kappa of two people by their labels of the same documents.

    1: they always agree; 0: as often as by chance. None where chance alone makes them agree always, or without labels.
    """
    n = len(labels)
    one, other = Counter(label for label, _ in labels), Counter(label for _, label in labels)
    by_chance = sum(count * other[label] for label, count in one.items())
    if by_chance == n * n:
        return None
    agreed = sum(label == second for label, second in labels)
    return float(Fraction(agreed * n - by_chance, n * n - by_chance))


def krippendorff(labels: Sequence[Sequence[Hashable]]) -> float | None:
    """Krippendorff's alpha by the labels of each document, one of each person who labeled it.

    1: all agree; 0: as often as by chance. Documents of one label are passed over. None where all labels are the same,
    or without documents of several.
    """
    pairable = [Counter(each) for each in labels if len(each) > 1]
    totals = Counter(label for each in pairable for label in each.elements())
    n = totals.total()
    expected = n * n - sum(count * count for count in totals.values())
    if not expected:
        return None
    observed = sum(
        Fraction(each.total() ** 2 - sum(count * count for count in each.values()), each.total() - 1)
        for each in pairable
    )
    return float(1 - observed * (n - 1) / expected)


def less_than_sure(labels: Sequence[Mapping[str, Hashable]]) -> set[str]:
    """The people who are right less than 95 times of 100 for all that is known, by the labels of each document by
    person.

    How often each is right is fitted in turn with the labels of the documents; the upper end of its interval decides.
    """
    compared = [each for each in labels if len(each) > 1]
    if not compared:
        return set()
    people = sorted({person for each in compared for person in each})
    place = {person: number for number, person in enumerate(people)}
    code: dict[Hashable, int] = {}
    given = [
        (row, place[by], code.setdefault(label, len(code)))
        for row, own in enumerate(compared)
        for by, label in own.items()
    ]
    document, person, label = np.array(given, np.int64).T
    candidates, candidate = np.unique(document * len(code) + label, return_inverse=True)
    owner = candidates // len(code)
    first = np.searchsorted(owner, np.arange(len(compared)))
    counts, right = np.bincount(person), np.full(len(people), _RIGHT)
    for _ in range(_ROUNDS):
        weight = log(right) - log((1 - right) / max(1, len(code) - 1))
        support = np.bincount(candidate, weight[person])
        likely = exp(support - np.maximum.reduceat(support, first)[owner])
        likely /= np.bincount(owner, likely)[owner]
        right = (np.bincount(person, likely[candidate]) + _RIGHT * _RIGHT_LABELS) / (counts + _RIGHT_LABELS)
    known = zip(people, right.tolist(), counts.tolist(), strict=True)
    return {by for by, share, count in known if wilson_interval(share, count, QUANTILE_OF_BOTH)[1] < _SURE}


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
