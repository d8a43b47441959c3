"""Slow reference of the transductive SVM: Table 4 of Sindhwani & Keerthi 2006 with the switching of section 3.1.2 pair
by pair.

The first ``len(y)`` rows of dense ``X`` (a last column of ones) are labeled. The stages are core's by decision: λ'
doubles from 1e-5 and the last is exactly the λ' asked for.
"""

from typing import NamedTuple

import numpy as np

from tests.reference.mfn import Array, minimise


class Solution(NamedTuple):
    w: Array
    labels: Array
    J: float
    """of Eqn. 18"""


def J_of(X: Array, y: Array, ridge: float, lambda_u: float, w: Array) -> float:
    """Eqn. 18, term by term."""
    n_unlabeled = len(X) - len(y)
    labeled = sum(max(0.0, 1.0 - label * float(np.dot(x, w))) ** 2 for x, label in zip(X[: len(y)], y, strict=True))
    unlabeled = sum(max(0.0, 1.0 - abs(float(np.dot(x, w)))) ** 2 for x in X[len(y) :])
    return float(0.5 * ridge * np.dot(w, w) + labeled / (2 * len(y)) + lambda_u * unlabeled / (2 * max(1, n_unlabeled)))


def labeled_costs(y: Array, n_rows: int) -> tuple[Array, Array]:
    positive, negative = np.zeros(n_rows), np.zeros(n_rows)
    for i, label in enumerate(y):
        (positive if label > 0 else negative)[i] = 1.0 / len(y)
    return positive, negative


def first_labels(scores: Array, fraction: float) -> Array:
    labels = -np.ones(len(scores))
    for j in sorted(range(len(scores)), key=lambda j: (-scores[j], j))[: round(fraction * len(scores))]:
        labels[j] = 1.0
    return labels


def switch(labels: Array, scores: Array, most: int | None) -> bool:
    """Switch at most ``most`` improving pairs in place; whether there was one."""
    plus = sorted((o, j) for j, o in enumerate(scores) if labels[j] > 0 and o < 1)
    minus = sorted((-o, j) for j, o in enumerate(scores) if labels[j] < 0 and -o < 1)
    switched = 0
    for (low, i), (high, j) in zip(plus, minus, strict=False):
        if low >= -high or (most is not None and switched == most):
            break
        labels[i], labels[j] = -1.0, 1.0
        switched += 1
    return switched > 0


def stages(lambda_u: float) -> list[float]:
    weights = [1e-5]
    while weights[-1] * 2 < lambda_u:
        weights.append(weights[-1] * 2)
    return [weight for weight in weights if weight < lambda_u] + [lambda_u]


def tsvm(X: Array, y: Array, ridge: float, lambda_u: float, fraction: float, most: int | None) -> Solution:
    n_labeled, n_unlabeled = len(y), len(X) - len(y)
    positive, negative = labeled_costs(y, len(X))
    w = minimise(X, positive, negative, ridge)
    labels = first_labels(X[n_labeled:] @ w, fraction)
    for weight in stages(lambda_u):
        going = True
        while going:
            positive[n_labeled:] = np.where(labels > 0, weight / n_unlabeled, 0.0)
            negative[n_labeled:] = np.where(labels < 0, weight / n_unlabeled, 0.0)
            w = minimise(X, positive, negative, ridge)
            going = switch(labels, X[n_labeled:] @ w, most)
    return Solution(w, labels, J_of(X, y, ridge, lambda_u, w))
