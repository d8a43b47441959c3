"""Hyperplanes that keep the balance of the unlabeled rows, and the working set of planes that cut their objective."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.engine.requests import Adjoint, Adjoints, Cut, Procedure, Scores, Vector, Yield
from core.numerics.small_dense import combined, times_rows
from core.numerics.vectors import dot, dots
from core.numerics.width import WIDTH
from core.optimizers.simplex_qp import maximise_on_simplex
from core.problem import Problem

_PATIENCE = 30
_ROOM = 16
_PRODUCTS = 1 << 27
"""multiplications between two moments for the observer: some 20 ms"""

Mask = NDArray[np.bool_]
Bits = NDArray[np.uint8]


class Point(NamedTuple):
    """A hyperplane with its scores and its objective."""

    vector: Vector
    """w with the bias last, shape (n_features + 1,)"""
    scores: Vector
    """o, shape (n_rows,)"""
    sides: Vector
    """the side that each row should be on, shape (n_rows,): its label, or for an unlabeled row the side that it is
    on"""
    loss: float
    """``Σ_i weight_i max(0, 1 − sides_i o_i)``: the least ξ that satisfies all constraints of problem (4) of Zhao et
    al. 2008"""
    objective: float
    """``½ |w|² + loss``, problem (3)"""

    @property
    def short(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The rows that fall short of the margin: c of the most violated constraint (Eqns. 9 and 10)."""
        return self.sides * self.scores < 1


class Hyperplanes:
    """All ``o = w · (x − centre) + level``: the weighted mean of the unlabeled scores is ``level`` whatever w is.

    The centre is one more vector beside the rows, which stay as they are; ``locate`` finds it. Without unlabeled rows
    it is that of the labeled ones.
    """

    def __init__(self, problem: Problem, weights: Vector, level: float) -> None:
        self.weights, self.level = weights, level
        self.centre = np.zeros(problem.rows.n_features)
        self._averaged = problem.weights
        if problem.n_unlabeled:
            self._averaged[: problem.n_labeled] = 0.0
        self._labels = np.append(problem.y, np.zeros(problem.n_unlabeled))

    def locate(self) -> Procedure[None]:
        """Find the centre."""
        sums = np.zeros(len(self.centre) + 1)
        yield Adjoint(self._averaged, sums)
        self.centre = sums[:-1]

    def nothing(self) -> Point:
        """w = 0."""
        return self._point(np.append(np.zeros_like(self.centre), self.level), np.full_like(self.weights, self.level))

    def scored(self, coefficients: Vector) -> Procedure[Point]:
        """The point of some w."""
        vector, scores = self._vector(coefficients), np.empty_like(self.weights)
        yield Scores(vector, np.zeros_like(scores), scores)
        return self._point(vector, scores)

    def cut(self, coefficients: Vector) -> Procedure[tuple[Point, Vector]]:
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


class Solution(NamedTuple):
    """The minimum of problem (17) over the working set."""

    coefficients: Vector
    """w, shape (n_features,)"""
    slack: float
    """ξ: the least that satisfies all planes, linearised, with w"""
    value: float
    """½ |w|² + ξ"""


class Planes:
    """Constraints ``ξ ≥ h_k − z_k · w`` of problem (17), one for each vector c of the working set Ω.

    ``z_k = Σ_i weight_i c_ki s_i (x_i − centre)`` and ``h_k = Σ_i weight_i c_ki (1 − s_i level)``, where s are the
    ``sides`` by which all planes are linearised: labels for the labeled rows, sign(o) at the last point for the
    unlabeled (Eqns. 15 to 18 of Zhao et al. 2008, with weights in the place of C_l/n and C_u/n). Sums over rows come as
    ``Xᵀ a`` with the sum of a last; the centre is taken off afterwards, so rows stay sparse.
    """

    def __init__(self, weights: Vector, centre: Vector, level: float) -> None:
        self._weights, self._centre, self._level = weights, centre, level
        self._sides = np.zeros_like(weights)
        self._members: list[
            Bits
        ] = []  # eight rows a byte: of many planes over many rows they would be most of the memory
        self._normals = np.empty((_ROOM, len(centre)))
        self._gram = np.zeros((_ROOM, _ROOM))
        self._offsets, self._duals = np.zeros(0), np.zeros(0)
        self._idle = np.zeros(0, np.int64)
        self._stale = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._members)

    def add(self, members: Mask, subgradient: Vector) -> None:
        """One more plane: c, shape (n_rows,), and ``Xᵀ(weights ∘ c ∘ sides)`` by the sides that the others are
        linearised by.
        """
        if len(self) == len(self._normals):
            self._normals = np.concatenate([self._normals, np.empty_like(self._normals)])
            self._gram = np.pad(self._gram, (0, len(self)))
        self._normals[len(self)] = 0.0
        self._members.append(np.packbits(members))
        self._offsets = np.append(self._offsets, self._weights[members].sum())
        self._duals, self._idle, self._stale = (
            np.append(self._duals, 0.0),
            np.append(self._idle, 0),
            np.append(self._stale, True),
        )
        self._shift(len(self) - 1, subgradient)

    def moved(self, sides: Vector) -> bool:
        """Whether other sides would change any plane."""
        among = _Among(np.flatnonzero(sides != self._sides))
        return any(among.mask(members).any() for members in self._members)

    def linearise(self, sides: Vector) -> Procedure[None]:
        """Linearise all planes by other sides: each takes a pass over its rows that change sides, several planes at
        once.
        """
        rows = np.flatnonzero(sides != self._sides)
        changes = self._weights[rows] * (sides - self._sides)[rows]
        weights, among = np.zeros((WIDTH, len(sides))), _Among(rows)
        moved = [k for k, members in enumerate(self._members) if (changes * among.mask(members)).any()]
        for first in range(0, len(moved), WIDTH):
            group = moved[first : first + WIDTH]
            for k, own in zip(group, weights, strict=False):
                own[rows] = changes * among.mask(self._members[k])
            sums = np.zeros((len(group), len(self._centre) + 1))
            yield Adjoints([Adjoint(*each) for each in zip(weights, sums, strict=False)])
            for k, subgradient in zip(group, sums, strict=True):
                self._shift(k, subgradient)
        self._sides = sides

    def solve(self) -> Procedure[Solution]:
        """The minimum of problem (17), by its dual (19); the duals of the last time are where the search for the new
        ones starts.
        """
        normals, gram = self._normals[: len(self)], self._gram[: len(self), : len(self)]
        yield from self._multiply(normals, gram)
        self._duals = maximise_on_simplex(gram, self._offsets, self._duals)
        products = np.empty(len(self))
        dots(np.ascontiguousarray(gram), self._duals, products)
        slack = max(0.0, float((self._offsets - products).max()))
        coefficients = combined(self._duals, normals)
        return Solution(coefficients, slack, 0.5 * dot(coefficients, coefficients) + slack)

    def tidy(self) -> None:
        """Drop the planes that have not borne on the solution for many rounds."""
        self._idle = np.where(self._duals > 0, 0, self._idle + 1)
        kept = np.flatnonzero(self._idle < _PATIENCE)
        if len(kept) == len(self):
            return
        self._normals[: len(kept)] = self._normals[kept]
        self._gram[: len(kept), : len(kept)] = self._gram[np.ix_(kept, kept)]
        self._members = [self._members[k] for k in kept]
        self._offsets, self._duals = self._offsets[kept], self._duals[kept]
        self._idle, self._stale = self._idle[kept], self._stale[kept]

    def _multiply(self, normals: Vector, gram: Vector) -> Procedure[None]:
        """Products of all planes with those that have changed; of many planes a part of their length at a time."""
        stale = np.flatnonzero(self._stale)
        gram[stale] = 0.0
        width = max(1, _PRODUCTS // (len(stale) * len(self) or 1))
        for start in range(0, normals.shape[1], width):
            times_rows(normals, stale, start, min(start + width, normals.shape[1]), gram)
            yield Yield()
        gram[:, stale] = gram[stale].T
        self._stale[:] = False

    def _shift(self, k: int, subgradient: Vector) -> None:
        """Add the sum over some rows to a plane."""
        self._normals[k] += subgradient[:-1] - subgradient[-1] * self._centre
        self._offsets[k] -= self._level * subgradient[-1]
        self._stale[k] = True


class _Among:
    """Which of some rows belong to a plane."""

    def __init__(self, rows: NDArray[np.intp]) -> None:
        self._bytes, self._bits = rows >> 3, (128 >> (rows & 7)).astype(np.uint8)

    def mask(self, members: Bits) -> Mask:
        """A mask of the rows."""
        return np.asarray(members[self._bytes] & self._bits != 0)
