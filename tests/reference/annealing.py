"""Slow reference of deterministic annealing: Tables 5 to 7 of Sindhwani & Keerthi 2006, with plain bisection for the
balance.

Temperatures are in units of λ', as core has them by decision (T starts at ``temperature`` λ').
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize as minimise_smooth
from scipy.special import expit, logsumexp, softmax

from tests.reference.mfn import Array, minimise
from tests.reference.transductive import J_of, labeled_costs


class Path(NamedTuple):
    w: Array
    """of least J"""
    J: float
    last: Array
    """where the path ended"""


def gains_of(scores: Array, lambda_u: float) -> Array:
    return np.array([lambda_u * (max(0.0, 1.0 - o) ** 2 - max(0.0, 1.0 + o) ** 2) for o in scores])


def balanced(gains: Array, weights: Array, fraction: float, T: float) -> Array:
    """Table 6 by bisection alone, until the bracket cannot shrink."""
    low, high = float(gains.min()) - 800 * T, float(gains.max()) + 800 * T
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if weights @ expit((middle - gains) / T) < fraction else (low, middle)
    return np.asarray(expit((low - gains) / T))


def entropy(p: Array) -> float:
    return -sum(float(x) * math.log(x) for q in p for x in (q, 1 - q) if x > 0) / len(p)


def divergence(p: Array, q: Array) -> float:
    total = 0.0
    for after, before in zip(p, q, strict=True):
        for x, y in ((after, before), (1 - after, 1 - before)):
            total += 0.0 if x == 0 else math.inf if y == 0 else x * math.log(x / y)
    return total / len(p)


def anneal(X: Array, y: Array, ridge: float, lambda_u: float, fraction: float, temperatures: list[float]) -> Path:
    """Table 5 over given temperatures (in units of λ')."""
    n_labeled, n_unlabeled = len(y), len(X) - len(y)
    weights = np.full(n_unlabeled, 1 / n_unlabeled)
    positive, negative = labeled_costs(y, len(X))
    w, p = np.zeros(X.shape[1]), np.full(n_unlabeled, fraction)
    best, least = w, math.inf
    for T in temperatures:
        for turn in range(100):
            last, p = p, balanced(gains_of(X[n_labeled:] @ w, lambda_u), weights, fraction, T * lambda_u)
            if turn and divergence(p, last) < 1e-6:
                break
            positive[n_labeled:], negative[n_labeled:] = lambda_u * weights * p, lambda_u * weights * (1 - p)
            w = minimise(X, positive, negative, ridge)
            J = J_of(X, y, ridge, lambda_u, w)
            if least > J:
                best, least = w, J
        if entropy(p) < 1e-6:
            break
    return Path(best, least, w)


def class_beliefs(gains: Array, weights: Array, fractions: Array, T: float) -> Array:
    """The p of shape (n_classes, n_rows) of a Potts glass, by the minimum of the dual problem."""

    def dual(multipliers: Array) -> tuple[float, Array]:
        powers = (multipliers[:, None] - gains) / T
        slopes = softmax(powers, axis=0) @ weights - fractions
        return float(T * weights @ logsumexp(powers, axis=0) - fractions @ multipliers), slopes

    found = minimise_smooth(dual, np.zeros(len(gains)), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return np.asarray(softmax((found[:, None] - gains) / T, axis=0))


def anneal_classes(
    X: Array,
    labels: NDArray[np.integer[Any]],
    ridge: float,
    lambda_u: float,
    fractions: Array,
    temperatures: list[float],
) -> float:
    """The least J of all classes on the path of footnote 10: Table 5 with beliefs in classes."""
    n_labeled, n_unlabeled, classes = len(labels), len(X) - len(labels), range(len(fractions))
    weights = np.full(n_unlabeled, 1 / n_unlabeled)
    W, p, least = np.zeros((len(fractions), X.shape[1])), np.zeros((len(fractions), n_unlabeled)), math.inf
    for T in temperatures:
        for turn in range(100):
            gains = np.stack([gains_of(X[n_labeled:] @ w, lambda_u) for w in W])
            last, p = p, class_beliefs(gains, weights, fractions, T * lambda_u)
            if turn and np.abs(p - last).max() < 1e-4:
                break
            for k in classes:
                positive, negative = labeled_costs(np.where(labels == k, 1.0, -1.0), len(X))
                positive[n_labeled:], negative[n_labeled:] = lambda_u * weights * p[k], lambda_u * weights * (1 - p[k])
                W[k] = minimise(X, positive, negative, ridge)
            least = min(least, J_of_classes(X, labels, ridge, lambda_u, W))
    return least


def J_of_classes(X: Array, labels: NDArray[np.integer[Any]], ridge: float, lambda_u: float, W: Array) -> float:
    """J of all classes together: each unlabeled row has the class that costs least."""
    n_labeled = len(labels)
    scores, J = X @ W.T, 0.5 * ridge * float((W * W).sum())
    cheapest = np.stack([gains_of(own, 1.0) for own in scores[n_labeled:].T]).argmin(axis=0)
    for k in range(len(W)):
        for known, weight in ((labels, 1.0), (cheapest, lambda_u)):
            own = scores[:n_labeled, k] if known is labels else scores[n_labeled:, k]
            J += 0.5 * weight * float(np.mean(np.maximum(0, 1 - np.where(known == k, 1, -1) * own) ** 2))
    return J
