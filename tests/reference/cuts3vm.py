"""Slow references of CutS3VM: problem (4) with all its constraints, problem (1) by trying all labels, and Algorithms 1
and 2 in plain NumPy.

The first ``len(y)`` rows of dense ``X`` (no column of ones) are labeled. ``weights`` are those of the losses: C/l and
C_u/u, or the paper's C_l/n and C_u/n. The centre is the mean of the unlabeled rows.
"""

from collections.abc import Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from tests.reference.mfn import Array


class Geometry(NamedTuple):
    """Centred rows and their costs."""

    X: Array
    y: Array
    weights: Array
    level: float

    def scores(self, w: Array) -> Array:
        return np.array([float(np.dot(x, w)) + self.level for x in self.X])


def geometry(X: Array, y: Array, C: float, C_u: float, fraction: float) -> Geometry:
    n_unlabeled = len(X) - len(y)
    weights = np.append(np.full(len(y), C / len(y)), np.full(n_unlabeled, C_u / n_unlabeled))
    return Geometry(X - X[len(y) :].mean(axis=0), y, weights, 2 * fraction - 1)


def objective(of: Geometry, w: Array) -> float:
    """Problem (3), term by term."""
    total = 0.5 * float(np.dot(w, w))
    for i, score in enumerate(of.scores(w)):
        margin = of.y[i] * score if i < len(of.y) else abs(score)
        total += of.weights[i] * max(0.0, 1.0 - margin)
    return total


def constraints(of: Geometry, w: Array) -> Iterator[float]:
    """For every c in {0, 1}ⁿ the ξ that its constraint of problem (4) asks for."""
    scores = of.scores(w)
    margins = np.append(of.y * scores[: len(of.y)], np.abs(scores[len(of.y) :]))
    for c in product((0.0, 1.0), repeat=len(of.X)):
        yield float(sum(of.weights * c) - sum(of.weights * c * margins))


def hinge_svm(of: Geometry, labels: Array) -> float:
    """The minimum of problem (1) for fixed labels of all rows, by its dual: a box and nothing else, for b is fixed."""
    Z = labels[:, None] * of.X
    heights = 1.0 - labels * of.level

    def value(a: Array) -> tuple[float, Array]:
        w = a @ Z
        return 0.5 * float(w @ w) - float(heights @ a), Z @ w - heights

    found = minimize(
        value,
        of.weights / 2,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, weight) for weight in of.weights],
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    return -float(found.fun)


def least(of: Geometry) -> float:
    """The minimum of problem (1) over w and all labels of the unlabeled rows."""
    tried = product((-1.0, 1.0), repeat=len(of.X) - len(of.y))
    return min(hinge_svm(of, np.append(of.y, labels)) for labels in tried)


def dual_by_faces(gram: Array, offsets: Array) -> float:
    """The maximum of the dual (19): it lies on some face of the simplex, so all of them are tried."""
    best = 0.0
    for size in range(1, len(offsets) + 1):
        for face in map(list, combinations(range(len(offsets)), size)):
            inner, heights, ones = gram[np.ix_(face, face)], offsets[face], np.ones((size, 1))
            free = np.linalg.lstsq(inner, heights, rcond=None)[0]
            bound = np.linalg.lstsq(
                np.block([[inner, ones], [ones.T, np.zeros((1, 1))]]), np.append(heights, 1.0), rcond=None
            )[0][:-1]
            for duals in (free, bound):
                if (duals >= 0).all() and duals.sum() <= 1 + 1e-12:
                    best = max(best, float(heights @ duals - 0.5 * duals @ inner @ duals))
    return best


class Plane(NamedTuple):
    c: Array
    z: Array
    h: float


class Solution(NamedTuple):
    w: Array
    slack: float
    value: float
    rounds: int


def linearised(of: Geometry, c: Array, w_t: Array) -> Plane:
    """Eqn. 18 at w_t."""
    signs = np.append(of.y, np.where(of.scores(w_t)[len(of.y) :] >= 0, 1.0, -1.0))
    z, h = np.zeros(of.X.shape[1]), 0.0
    for i in range(len(of.X)):
        z += of.weights[i] * c[i] * signs[i] * of.X[i]
        h += of.weights[i] * c[i] * (1.0 - signs[i] * of.level)
    return Plane(c, z, h)


def quadratic_program(planes: list[Plane], d: int) -> tuple[Array, float]:
    """Problem (17) in the primal, by a general method: w and ξ."""
    A = np.array([[*plane.z, 1.0] for plane in planes])
    scale = max(plane.h for plane in planes)
    found = minimize(  # type: ignore[call-overload]
        lambda v: 0.5 * float(v[:d] @ v[:d]) + float(v[d]),
        np.append(np.zeros(d), scale),
        jac=lambda v: np.append(v[:d], 1.0),
        method="SLSQP",
        constraints=[LinearConstraint(A, np.array([plane.h for plane in planes]), np.inf)],
        bounds=[*[(-np.inf, np.inf)] * d, (0.0, np.inf)],
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return found.x[:d], float(found.x[d])


def cuts3vm(of: Geometry, start: Array, epsilon: float, most: int = 200) -> Solution:
    """Algorithms 1 and 2; the first plane is cut at the start."""
    d, w, slack, value, chosen = of.X.shape[1], start, -np.inf, np.inf, []
    for rounds in range(most):
        scores = of.scores(w)
        margins = np.append(of.y * scores[: len(of.y)], np.abs(scores[len(of.y) :]))
        c = (margins < 1).astype(float)
        if float(sum(of.weights * c * (1.0 - margins))) - slack <= epsilon:
            return Solution(w, slack, value, rounds)
        chosen.append(c)
        last = np.inf
        while True:
            w, slack = quadratic_program([linearised(of, c, w) for c in chosen], d)
            value = 0.5 * float(w @ w) + slack
            if value >= 0.99 * last:
                break
            last = value
    raise AssertionError("no end")
