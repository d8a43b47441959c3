"""Slow reference of the Laplacian methods: dense matrices, distances one by one, direct solves."""

import numpy as np
from numpy.typing import NDArray

from tests.reference.mfn import Array


def laplacian(rows: Array, count: int) -> Array:
    """``I − D^−½ W D^−½`` of the graph of nearest neighbours, both ways; of equal distances the first."""
    n = len(rows)
    W = np.zeros((n, n))
    for i in range(n):
        others = sorted((float(np.sum((rows[i] - rows[j]) ** 2)), j) for j in range(n) if j != i)
        for _, j in others[:count]:
            W[i, j] = W[j, i] = 1.0
    degrees = W.sum(axis=1)
    return np.asarray(np.eye(n) - W / np.sqrt(np.outer(degrees, degrees)))


def least_squares(X: Array, y: Array, ridge: float, roughness: Array) -> Array:
    """The w of least ``ridge/2 |w|² + 1/(2l) Σ (y − o)² + ½ oᵀ roughness o``, o = Xw: its normal equations."""
    labeled = X[: len(y)]
    matrix = ridge * np.eye(X.shape[1]) + labeled.T @ labeled / len(y) + X.T @ roughness @ X
    return np.asarray(np.linalg.solve(matrix, labeled.T @ y / len(y)))


def svm(X: Array, y: Array, ridge: float, roughness: Array) -> Array:
    """The same of ``max(0, 1 − y o)²``: one set of active rows after the other, until one leads to itself."""
    labeled, active = X[: len(y)], np.ones(len(y), bool)
    seen: set[bytes] = set()
    while active.tobytes() not in seen:
        seen.add(active.tobytes())
        A = labeled[active]
        matrix = ridge * np.eye(X.shape[1]) + A.T @ A / len(y) + X.T @ roughness @ X
        w = np.asarray(np.linalg.solve(matrix, A.T @ y[active] / len(y)))
        following: NDArray[np.bool_] = y * (labeled @ w) < 1
        if np.array_equal(following, active):
            return w
        active = following
    raise AssertionError("the active sets go in circles")
