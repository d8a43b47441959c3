"""Slow references of the convex relaxation: the paper's programme given to a general solver, and the problem that it
relaxes by trying all labels.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import clarabel
import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Given(NamedTuple):
    """Data of (9) and (12) of Xu et al. 2007; labeled rows first."""

    K: Array
    """positive definite, without the bias"""
    y: Array
    caps: Array
    """C of each row; infinite for a hard margin"""
    epsilon: float | None
    bias: float
    """value of the constant feature; 0 drops b"""

    @property
    def labeled(self) -> NDArray[np.bool_]:
        return np.arange(len(self.K)) < len(self.y)

    @property
    def c(self) -> Array:
        return np.where(self.labeled, 1 / len(self.y), -1 / max(1, len(self.K) - len(self.y)))

    @property
    def G(self) -> Array:
        return self.K + self.bias**2


def dual_value(given: Given) -> float:
    """The programme (12) in w = (z, b), as it is printed, with b² / bias² added to the primal objective.

    The block is multiplied from both sides by what makes A the identity: a general solver loses digits on an A of large
    condition.
    """
    n = len(given.K)
    P = np.hstack([np.eye(n), np.ones((n, 1))]) if given.bias else np.eye(n)
    A = P.T @ np.linalg.inv(given.K) @ P
    if given.bias:
        A[n, n] += given.bias**-2
    scale = np.linalg.inv(np.linalg.cholesky((A + A.T) / 2)).T
    pad = np.zeros(len(A) - n)
    a, b, c = (
        np.concatenate([part, pad])
        for part in (np.append(given.y, np.zeros(n - len(given.y))), 1.0 - given.labeled, given.c)
    )
    gamma, multipliers, t = cp.Variable(n, nonneg=True), cp.Variable(2, nonneg=True), cp.Variable((1, 1))
    wide = np.vstack([np.eye(n), np.zeros((len(pad), n))])
    linear_term = cp.reshape(
        scale.T @ (cp.multiply(a, wide @ gamma) - (multipliers[0] - multipliers[1]) * c), (len(A), 1), order="C"
    )
    block = cp.bmat(
        [[np.eye(len(A)) - scale.T @ cp.diag(cp.multiply(b, wide @ gamma)) @ scale, linear_term], [linear_term.T, t]]
    )
    worth = np.ones(n) @ gamma - t[0, 0] / 4
    constraints = [(block + block.T) / 2 >> 0]
    constraints += [gamma[k] <= given.caps[k] for k in np.flatnonzero(np.isfinite(given.caps))]
    if given.epsilon is None:
        constraints.append(multipliers == 0)
    else:
        worth -= given.epsilon * (multipliers[0] + multipliers[1])
    problem: Any = cp.Problem(cp.Maximize(worth), constraints)
    return float(problem.solve(solver=cp.CLARABEL))


def best_labeling(given: Given) -> float:
    """The least value of the problem that is relaxed, over the solutions for all labels of the unlabeled rows.

    With a hard margin that is the optimum of (7). With a soft one it is a bound of the optimum from above: (12) makes
    an unlabeled row pay ``1 − z²`` where the SVM for given labels makes it pay ``1 − |z|``.
    """
    return min(
        _value(given, _solution(given, np.append(given.y, labels))) for labels in _all_labels(given, [-1.0, 1.0])
    )


def soft_optimum(given: Given) -> float:
    """The least value of the problem that is relaxed, for caps so small that ``G⁻¹ − D(caps)`` is positive definite.

    Each unlabeled row is below −1, above 1, or between and pays ``caps (1 − z²)``: one convex quadratic programme for
    each combination.
    """
    return min(
        _value(given, _solution(given, np.append(given.y, labels))) for labels in _all_labels(given, [-1.0, 0.0, 1.0])
    )


def _all_labels(given: Given, choices: list[float]) -> Iterator[Array]:
    return (np.array(labels) for labels in product(choices, repeat=len(given.K) - len(given.y)))


def _value(given: Given, z: Array) -> float:
    losses = np.append(
        np.maximum(0.0, 1.0 - given.y * z[: len(given.y)]), np.maximum(0.0, 1.0 - z[len(given.y) :] ** 2)
    )
    soft = np.isfinite(given.caps)
    assert (losses[~soft] < 1e-6).all()
    return float(z @ np.linalg.solve(given.G, z) + given.caps[soft] @ losses[soft])


def _solution(given: Given, labels: Array) -> Array:
    """z of ``min zᵀ G⁻¹ z + Σ caps · loss``:
    ``max(0, 1 − label z)`` for a label, ``1 − z²`` on |z| ≤ 1 for 0; under the balance.
    """
    n, soft = len(labels), np.isfinite(given.caps)
    certain = labels != 0
    quadratic = 2 * (np.linalg.inv(given.G) - np.diag(np.where(certain, 0.0, np.where(soft, given.caps, 0.0))))
    slack = np.eye(n)[:, soft & certain]
    blocks = [
        (-np.diag(labels)[certain], -slack[certain], -1.0),
        (np.zeros((slack.shape[1], n)), -np.eye(slack.shape[1]), 0.0),
    ]
    blocks += [(sign * np.eye(n)[~certain], np.zeros_like(slack[~certain]), 1.0) for sign in (1.0, -1.0)]
    if given.epsilon is not None:
        blocks += [(sign * given.c[None], np.zeros((1, slack.shape[1])), given.epsilon) for sign in (1.0, -1.0)]
    left = np.vstack([np.hstack(block[:2]) for block in blocks])
    right = np.concatenate([np.full(len(block[0]), block[2]) for block in blocks])
    whole = np.zeros((left.shape[1],) * 2)
    whole[:n, :n] = quadratic
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    linear = np.append(np.zeros(n), given.caps[soft & certain])
    cones = [clarabel.NonnegativeConeT(len(right))]
    answer = clarabel.DefaultSolver(
        sp.csc_matrix(np.triu(whole)), linear, sp.csc_matrix(left), right, cones, settings
    ).solve()
    assert str(answer.status) in ("Solved", "AlmostSolved")
    return np.array(answer.x)[:n]
