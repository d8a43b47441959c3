"""Requests of linear solvers for passes over the rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


class Product(NamedTuple):
    """Wanted: ``q = X p`` written to ``scores`` on the rows with a weight; answered with ``Xᵀ(weights ∘ q)``."""

    vector: Vector
    weights: Vector
    scores: Vector


class Scores(NamedTuple):
    """Wanted: ``X p`` written to ``scores`` on the rows where ``skipped`` is 0; answered with None."""

    vector: Vector
    skipped: Vector
    scores: Vector


class Adjoint(NamedTuple):
    """Wanted: ``sums += Xᵀ weights``; answered with None."""

    weights: Vector
    sums: Vector


class Adjoints(NamedTuple):
    """Wanted: several of these, each with sums of its own, at once; answered with None."""

    requests: Sequence[Adjoint]


class Cut(NamedTuple):
    """Wanted: ``X p`` written to ``scores``; answered with ``Xᵀ(weights ∘ sides)`` of the rows with ``side · score <
    1``.

    The side of a row is its label, or without one (0) the sign of its score, +1 for 0.
    """

    vector: Vector
    labels: Vector
    weights: Vector
    scores: Vector


def share(weights: Vector) -> float:
    """The share of the rows that a pass with these weights reads."""
    return float(np.count_nonzero(weights)) / max(1, len(weights))
