"""Agreement of people who label the same documents, beyond chance.

Sources: Cohen, A coefficient of agreement for nominal scales, 1960; Krippendorff, Content analysis, 2004, section 11.3
(nominal data, missing labels); Dawid & Skene, Maximum likelihood estimation of observer error-rates, 1979, with one
error-rate a person.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from core.numerics.binomial import QUANTILE_OF_BOTH, wilson_interval
from core.numerics.elementary import exp, log

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
    totals = Counter[Hashable]()
    for each in pairable:
        totals.update(each)
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
