"""Hyperplanes that keep the balance of the unlabeled rows by going through their centre, and the loss that they leave."""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from core.engine.runner import Adjoint, Cut, Request, Scores, Vector
from core.numerics.vectors import dot
from core.problem.problem import Problem


class Point(NamedTuple):
    """A hyperplane and what is known of it."""

    vector: Vector
    """w with the bias last, shape (n_features + 1,)"""
    scores: Vector
    """o, shape (n_rows,)"""
    sides: Vector
    """the side that each row should be on, shape (n_rows,): its label, or for an unlabeled row the side that it is on"""
    loss: float
    """``Σ_i weight_i max(0, 1 − sides_i o_i)``: the least ξ that satisfies all constraints of problem (4) of Zhao et al. 2008"""
    objective: float
    """``½ |w|² + loss``, problem (3)"""

    @property
    def short(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The rows that fall short of the margin: c of the most violated constraint (Eqns. 9 and 10)."""
        return self.sides * self.scores < 1


class Hyperplanes:
    """All ``o = w · (x − centre) + level``: the weighted mean of the unlabeled scores is ``level`` whatever w is.

    The centre is one more vector beside the rows, which stay as they are; ``locate`` finds it. Without unlabeled rows it is that of the labeled ones.
    """

    def __init__(self, problem: Problem, weights: Vector, level: float) -> None:
        self.weights, self.level = weights, level
        self.centre = np.zeros(problem.rows.n_features)
        self._averaged = problem.weights
        if problem.n_unlabeled:
            self._averaged[: problem.n_labeled] = 0.0
        self._labels = np.append(problem.y, np.zeros(problem.n_unlabeled))

    def locate(self) -> Generator[Request, Any, None]:
        """Find the centre."""
        sums = np.zeros(len(self.centre) + 1)
        yield Adjoint(self._averaged, sums)
        self.centre = sums[:-1]

    def nothing(self) -> Point:
        """w = 0."""
        return self._point(np.append(np.zeros_like(self.centre), self.level), np.full_like(self.weights, self.level))

    def scored(self, coefficients: Vector) -> Generator[Request, Any, Point]:
        """The point of some w."""
        vector, scores = self._vector(coefficients), np.empty_like(self.weights)
        yield Scores(vector, np.zeros_like(scores), scores)
        return self._point(vector, scores)

    def cut(self, coefficients: Vector) -> Generator[Request, Any, tuple[Point, Vector]]:
        """The point of some w and ``Xᵀ(weights ∘ short ∘ sides)``, from one pass."""
        vector, scores = self._vector(coefficients), np.empty_like(self.weights)
        subgradient = yield Cut(vector, self._labels, self.weights, scores)
        return self._point(vector, scores), subgradient

    def spread(self, point: Point) -> float:
        """The standard deviation of the scores of the rows that the centre is taken of."""
        return float(np.sqrt((self._averaged * (point.scores - self.level) ** 2).sum()))

    def _vector(self, coefficients: Vector) -> Vector:
        return np.append(coefficients, self.level - dot(coefficients, self.centre))

    def _point(self, vector: Vector, scores: Vector) -> Point:
        sides = np.where(self._labels != 0, self._labels, np.where(scores >= 0, 1.0, -1.0))
        loss = dot(self.weights, np.maximum(0.0, 1.0 - sides * scores))
        return Point(vector, scores, sides, loss, 0.5 * dot(vector[:-1], vector[:-1]) + loss)
