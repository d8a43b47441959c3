"""Slow reference of the supervised part: Tables 1 to 3 of Sindhwani & Keerthi 2006 on dense arrays, by direct solves
and a sorted line search.

``X`` is dense, shape (n, d), with the bias as a last column of ones. Each row has a cost for +1 and one for -1, as in
Eqn. 11 the rows of an unlabeled document are two: the two-sided loss is the one-sided loss over ``X`` stacked on
itself.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def objective(X: Array, positive: Array, negative: Array, ridge: float, w: Array) -> float:
    total = 0.5 * ridge * sum(value * value for value in w)
    for x, plus, minus in zip(X, positive, negative, strict=True):
        o = float(np.dot(x, w))
        total += 0.5 * (plus * max(0.0, 1.0 - o) ** 2 + minus * max(0.0, 1.0 + o) ** 2)
    return float(total)


def gradient(X: Array, positive: Array, negative: Array, ridge: float, w: Array) -> Array:
    total = ridge * w
    for x, plus, minus in zip(X, positive, negative, strict=True):
        o = float(np.dot(x, w))
        if o < 1:
            total = total + plus * (o - 1) * x
        if o > -1:
            total = total + minus * (o + 1) * x
    return total


def sorted_line_search(w: Array, w_bar: Array, o: Array, o_bar: Array, Y: Array, C: Array, ridge: float) -> float:
    """Table 3: walk over the sorted break points of the derivative until it is not negative."""
    active = Y * o < 1
    L = ridge * w @ (w_bar - w) + sum(C[i] * (o[i] - Y[i]) * (o_bar[i] - o[i]) for i in np.flatnonzero(active))
    R = ridge * w_bar @ (w_bar - w) + sum(C[i] * (o_bar[i] - Y[i]) * (o_bar[i] - o[i]) for i in np.flatnonzero(active))
    breaks = []
    for i in range(len(Y)):
        move = Y[i] * (o_bar[i] - o[i])
        if (active[i] and move > 0) or (not active[i] and move < 0):
            breaks.append(((Y[i] - o[i]) / (o_bar[i] - o[i]), -1.0 if active[i] else 1.0, i))
    for delta, sign, i in sorted(breaks):
        if L + delta * (R - L) >= 0:
            break
        L += sign * C[i] * (o[i] - Y[i]) * (o_bar[i] - o[i])
        R += sign * C[i] * (o_bar[i] - Y[i]) * (o_bar[i] - o[i])
    return float(-L / (R - L))


def minimise(X: Array, positive: Array, negative: Array, ridge: float) -> Array:
    """Table 1 with Eqn. 4 solved directly: the minimiser, exact to rounding."""
    X2 = np.vstack([X, X])
    Y = np.concatenate([np.ones(len(X)), -np.ones(len(X))])
    C = np.concatenate([positive, negative])
    w = np.zeros(X.shape[1])
    for _ in range(200):
        o = X2 @ w
        active = np.flatnonzero((Y * o < 1) & (C > 0))
        A, costs = X2[active], C[active]
        w_bar = np.linalg.solve(ridge * np.eye(len(w)) + A.T @ (costs[:, None] * A), A.T @ (costs * Y[active]))
        o_bar = X2 @ w_bar
        if np.array_equal(np.flatnonzero((Y * o_bar < 1) & (C > 0)), active):
            return w_bar
        w = w + sorted_line_search(w, w_bar, o, o_bar, Y, C, ridge) * (w_bar - w)
    raise AssertionError("the finite Newton method did not end")
