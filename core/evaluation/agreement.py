"""Agreement of people who label the same documents, beyond chance.

Sources: Cohen, A coefficient of agreement for nominal scales, 1960; Krippendorff, Content analysis, 2004, section 11.3
(nominal data, missing labels).
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction


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
