"""Why a score is what it is: it is a sum of terms, of which the most telling are shown and the rest is added up."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.models.model import Model, Terms, Weights


class Explanation(NamedTuple):
    """``score = terms.intercept + terms.contributions.sum() + rest``."""

    score: float
    terms: Terms
    """the most telling first"""
    rest: float
    """what all other terms add up to"""


def explained(model: Model, row: SparseRows, column: int, n: int) -> Explanation:
    """A column of the scores of a single row, with at most ``n`` of its terms."""
    terms = model.terms(row, column)
    added = terms.contributions
    rest = float(added[n:].sum())
    return Explanation(terms.intercept + float(added[:n].sum()) + rest, terms.taken(slice(n)), rest)


def heaviest(found: Weights, n: int) -> tuple[Weights, Weights]:
    """At most ``n`` items that speak for a class and ``n`` that speak against it, the heaviest first, of equals the first."""
    return _largest(found, found.weights, n), _largest(found, -found.weights, n)


def _largest(found: Weights, keys: NDArray[np.float64], n: int) -> Weights:
    """The ``n`` of largest keys above 0."""
    chosen = np.flatnonzero(keys > 0)
    if 0 < n < len(chosen):
        least = np.partition(keys[chosen], len(chosen) - n)[len(chosen) - n]
        chosen = chosen[keys[chosen] >= least]
    chosen = chosen[np.argsort(-keys[chosen], kind="stable")][:n]
    return found._replace(items=found.items[chosen], weights=found.weights[chosen])
