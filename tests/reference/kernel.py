"""Slow reference of the kernel family: Algorithms 1.2 and 1.3 of Collobert et al. 2006 over full kernel matrices, every
convex step by Clarabel.

A dual variable α_i here carries its sign, as in the paper: f(x_i) = Σ_j α_j K_ij + b, and the bounds of Eqn. 1.9 hold
for y_i α_i. ``C`` holds a number a row throughout, so that a document's weight is its share of it.
"""

from typing import NamedTuple

import clarabel
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.float64]


def gram(kernel: str, A: Array, B: Array, gamma: float = 1.0, degree: int = 3, coef0: float = 0.0) -> Array:
    """K(a, b), one entry at a time."""
    K = np.zeros((len(A), len(B)))
    for i, a in enumerate(A):
        for j, b in enumerate(B):
            if kernel == "rbf":
                K[i, j] = np.exp(-gamma * float(np.sum((a - b) ** 2)))
            else:
                dot = float(np.dot(a, b))
                K[i, j] = dot if kernel == "linear" else (gamma * dot + coef0) ** degree
    return K


class Dual(NamedTuple):
    """A solution of the convex step."""

    alpha: Array
    b: float
    objective: float
    """α·ζ − ½ αᵀKα"""


def solve_dual(K: Array, zeta: Array, lower: Array, upper: Array) -> Dual:
    """max α·ζ − ½ αᵀKα subject to Σα = 0 and lower ≤ α ≤ upper (infinite: no bound); b is the multiplier of the
    equality.
    """
    n = len(zeta)
    eye = sp.eye(n, format="csr")
    below, above = np.flatnonzero(np.isfinite(lower)), np.flatnonzero(np.isfinite(upper))
    A = sp.vstack([sp.csr_matrix(np.ones((1, n))), eye[above], -eye[below]], format="csc")
    limits = np.concatenate([[0.0], upper[above], -lower[below]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(len(limits) - 1)]
    solution = clarabel.DefaultSolver(
        sp.triu(sp.csc_matrix((K + K.T) / 2), format="csc"), -zeta, A, limits, cones, settings
    ).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved"), solution.status
    alpha = np.clip(np.array(solution.x), lower, upper)
    return Dual(alpha, float(solution.z[0]), float(alpha @ zeta - 0.5 * alpha @ K @ alpha))


def hinge(z: Array, s: float = 1.0) -> Array:
    """H_s(z) = max(0, s − z)."""
    return np.maximum(0.0, s - z)


def ramp_loss(z: Array, s: float) -> Array:
    """R_s(z) = H_1(z) − H_s(z), Eqn. 1.7."""
    return hinge(z) - hinge(z, s)


class Solution(NamedTuple):
    """Where the procedure ended, and the objective after each convex step."""

    alpha: Array
    b: float
    f: Array
    """scores of the rows, in their order"""
    objectives: list[float]
    betas: list[Array]


def svm(K: Array, y: Array, C: Array) -> Solution:
    """The hinge-loss SVM, Eqn. 1.4."""
    dual = solve_dual(K, y, np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0))
    f = K @ dual.alpha + dual.b
    return Solution(dual.alpha, dual.b, f, [float(0.5 * dual.alpha @ K @ dual.alpha + C @ hinge(y * f))], [])


def ramp_svm(K: Array, y: Array, C: Array, s: float, beta: Array | None = None) -> Solution:
    """Algorithm 1.2; the objective is Eqn. 1.8."""
    beta = np.zeros(len(y)) if beta is None else beta
    objectives: list[float] = []
    betas = [beta]
    for _ in range(100):
        low, high = -beta, C - beta
        dual = solve_dual(K, y, np.where(y > 0, low, -high), np.where(y > 0, high, -low))
        f = K @ dual.alpha + dual.b
        objectives.append(float(0.5 * dual.alpha @ K @ dual.alpha + C @ ramp_loss(y * f, s)))
        beta = np.where(y * f < s, C, 0.0)
        if np.array_equal(beta, betas[-1]):
            return Solution(dual.alpha, dual.b, f, objectives, betas)
        betas.append(beta)
    raise AssertionError("the concave-convex procedure did not end")


def with_mean(K: Array, first: int, weights: Array) -> Array:
    """K with the row and column of Φ(x_0) = Σ_j weights_j Φ(x_{first + j}) before all others, Eqn. 1.15."""
    column = K[:, first:] @ weights
    return np.block([[np.array([[weights @ column[first:]]]), column[None, :]], [column[:, None], K]])


def cccp_tsvm(
    K: Array, y: Array, C: Array, C_u: Array, s: float, balance: float, weights: Array | None = None
) -> Solution:
    """Algorithm 1.3 with Eqn. 1.13 as Σ_j weights_j f(x_{L+j}) = balance; the objective is Eqn. 1.12.

    ``K`` is over the labeled rows, then the unlabeled; ``C`` and ``C_u`` have a number for each of them. ``alpha`` is
    that of x_0 and of the L + 2U rows.
    """
    L, U = len(y), len(K) - len(y)
    weights = np.full(U, 1.0 / U) if weights is None else weights
    twice = np.concatenate([np.arange(L), np.arange(L, L + U), np.arange(L, L + U)])
    labels = np.concatenate([y, np.ones(U), -np.ones(U)])
    costs = np.concatenate([C, C_u, C_u])
    extended = with_mean(K, L, weights)[np.ix_(np.append(0, 1 + twice), np.append(0, 1 + twice))]
    zeta = np.append(balance, labels)
    start = svm(K[:L, :L], y, C)
    f = K[:, :L] @ start.alpha + start.b
    beta = np.where((labels * f[twice] < s) & (np.arange(L + 2 * U) >= L), costs, 0.0)
    objectives: list[float] = []
    betas = [beta]
    for _ in range(200):
        low, high = -beta, costs - beta
        lower, upper = np.where(labels > 0, low, -high), np.where(labels > 0, high, -low)
        dual = solve_dual(extended, zeta, np.append(-np.inf, lower), np.append(np.inf, upper))
        scores = (extended @ dual.alpha + dual.b)[1:]
        losses = C @ hinge(y * scores[:L]) + costs[L:] @ ramp_loss((labels * scores)[L:], s)
        objectives.append(float(0.5 * dual.alpha @ extended @ dual.alpha + losses))
        beta = np.where((labels * scores < s) & (np.arange(L + 2 * U) >= L), costs, 0.0)
        if np.array_equal(beta, betas[-1]):
            return Solution(dual.alpha, dual.b, scores[: L + U], objectives, betas)
        betas.append(beta)
    raise AssertionError("the concave-convex procedure did not end")
