"""Requests of linear solvers for passes over the rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from core.numerics.elementary import Vector as Vector


class Product(NamedTuple):
    """Requests ``Xᵀ(weights ∘ q)`` with ``q = X p``, which is written to ``scores`` on the rows with a weight."""

    vector: Vector
    weights: Vector
    scores: Vector


class Scores(NamedTuple):
    """Requests that ``X p`` be written to ``scores`` on the rows where ``skipped`` is 0; the answer is None."""

    vector: Vector
    skipped: Vector
    scores: Vector


class Adjoint(NamedTuple):
    """Requests ``sums += Xᵀ weights``; the answer is None."""

    weights: Vector
    sums: Vector


class Adjoints(NamedTuple):
    """Requests several of these at once, each with sums of its own; the answer is None."""

    requests: Sequence[Adjoint]


class Cut(NamedTuple):
    """Requests ``Xᵀ(weights ∘ sides)`` of the rows with ``side · score < 1``; ``X p`` is written to ``scores``.

    The side of a row is its label, or without one (0) the sign of its score, +1 for 0.
    """

    vector: Vector
    labels: Vector
    weights: Vector
    scores: Vector


def share(weights: Vector) -> float:
    """The share of the rows that a pass with these weights reads."""
    return float(np.count_nonzero(weights)) / max(1, len(weights))
