"""Explanations of scores: sums of contributions, the most important one by one and the others together; the places of
terms in a text.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.part_columns import PartColumns
from core.documents.rows import SparseRows
from core.models.model import Contributions, LinearModel, Model, Weights


class Explanation(NamedTuple):
    """``score = contributions.intercept + contributions.amounts.sum() + rest``."""

    score: float
    contributions: Contributions
    """the most important first"""
    rest: float
    """sum of all other contributions"""
    parts: dict[str, float] | None
    """sum of the contributions of each part of the document, by a linear model of documents of several parts"""


def explain_score(model: Model, row: SparseRows, column: int, n: int) -> Explanation:
    """A column of the scores of a single row, with its ``n`` most important contributions, or fewer if it has fewer.

    Numbers of an encoder's vector mean nothing one by one: they are in the rest, and in their part.
    """
    contributions = model.contributions(row, column)
    added = contributions.amounts
    listed = np.flatnonzero(_have_meaning(model, contributions.items))[:n]
    rest = float(np.delete(added, listed).sum())
    score = contributions.intercept + float(added[listed].sum()) + rest
    return Explanation(score, contributions.taken(listed), rest, _by_part(model, contributions))


def _have_meaning(model: Model, items: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether items of a model are other than numbers of its encoder's vectors."""
    columns = model.vocabulary
    if not isinstance(columns, PartColumns) or columns.encoder is None or not isinstance(model, LinearModel):
        return np.ones(len(items), bool)
    made = columns.ranges[columns.encoder.part]
    return np.asarray((items < made.start) | (items >= made.stop), bool)


def _by_part(model: Model, contributions: Contributions) -> dict[str, float] | None:
    columns = model.vocabulary
    if not isinstance(columns, PartColumns) or not isinstance(model, LinearModel):
        return None
    sums = np.bincount(columns.places_of(contributions.items), contributions.amounts, len(columns.blocks))
    return dict(zip(columns.names, sums.tolist(), strict=True))


def weights_with_meaning(model: Model, column: int) -> Weights:
    """The weights of a column of the scores, without those of numbers of an encoder's vectors."""
    found = model.weights_of(column)
    kept = _have_meaning(model, found.items)
    return found._replace(items=found.items[kept], weights=found.weights[kept])


def top_weights(found: Weights, n: int) -> tuple[Weights, Weights]:
    """At most ``n`` items of the largest weights above 0, and ``n`` of the smallest below 0, the largest sizes first,
    of equals the first item.
    """
    return _largest(found, found.weights, n), _largest(found, -found.weights, n)


def _largest(found: Weights, keys: NDArray[np.float64], n: int) -> Weights:
    """The ``n`` of largest keys above 0."""
    chosen = np.flatnonzero(keys > 0)
    if 0 < n < len(chosen):
        least = np.partition(keys[chosen], len(chosen) - n)[len(chosen) - n]
        chosen = chosen[keys[chosen] >= least]
    chosen = chosen[np.argsort(-keys[chosen], kind="stable")][:n]
    return found._replace(items=found.items[chosen], weights=found.weights[chosen])


_WORD = re.compile(r"\b\w\w+\b")
MOST_CHARACTERS = 100_000
"""Characters of a text that are looked at."""

Span = tuple[int, int]


def term_spans(text: str, terms: Sequence[str]) -> list[list[Span]]:
    """Of each term, which is a word or a pair of consecutive words in lower case: where it stands, as its first
    character and that after its last.
    """
    words = [(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(text[:MOST_CHARACTERS])]
    pairs = [(f"{first} {second}", start, end) for (first, start, _), (second, _, end) in pairwise(words)]
    found: dict[str, list[Span]] = {term: [] for term in terms}
    for term, start, end in [*words, *pairs]:
        if term in found:
            found[term].append((start, end))
    return [found[term] for term in terms]
