"""The exact optimum of small transductive problems, by branch and bound over the labels of the unlabeled rows."""

import numpy as np

from tests.reference.mfn import Array, minimise, objective
from tests.reference.transductive import labeled_costs


def optimum(X: Array, y: Array, ridge: float, lambda_u: float, n_positive: int, most: float) -> tuple[float, Array]:
    """The least objective of Eqn. 7 of Sindhwani & Keerthi 2006 over all labels with ``n_positive`` times +1, and these
    labels.

    A node has labels of the first rows alone: rows without one cost nothing, so its minimum bounds all below it.
    ``most`` is the objective of any solution, as a first bound.
    """
    n_unlabeled = len(X) - len(y)
    base = labeled_costs(y, len(X))
    best, found = most, np.zeros(n_unlabeled)
    waiting: list[tuple[float, ...]] = [()]
    while waiting:
        labels = waiting.pop()
        positive, negative = (costs.copy() for costs in base)
        for j, label in enumerate(labels):
            (positive if label > 0 else negative)[len(y) + j] = lambda_u / n_unlabeled
        w = minimise(X, positive, negative, ridge)
        value = objective(X, positive, negative, ridge, w)
        if value > best:
            continue
        if len(labels) == n_unlabeled:
            best, found = value, np.array(labels)
            continue
        likely = 1.0 if X[len(y) + len(labels)] @ w > 0 else -1.0
        for label in (-likely, likely):
            count = sum(each > 0 for each in (*labels, label))
            if count <= n_positive <= count + n_unlabeled - len(labels) - 1:
                waiting.append((*labels, label))
    return best, found
