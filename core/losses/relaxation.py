"""Convex relaxation of the transductive SVM: a primal-dual pair of semidefinite programmes over a dense kernel matrix
(Xu et al. 2007).
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.blocked_lapack import Matrix, Vector, cholesky, solved


@dataclass(frozen=True)
class Relaxation:
    """Programme (12) of Xu et al. 2007, or (9) where caps are infinite; docs/ctsvm.md derives it.

    Primal: minimise ``tr(G⁻¹ Z) + Σ caps · ξ`` over scores z and Z ⪰ z zᵀ (in place of Z = z zᵀ), ξ ≥ 0, under
    ``y_i z_i ≥ 1 − ξ_i`` (labeled), ``Z_jj ≥ 1 − ξ_j`` (unlabeled), ``|balance · z| ≤ epsilon``.
    Dual: maximise ``Σγ − ε(α + β) − ¼ vᵀ M⁻¹ v`` over ``0 ≤ γ ≤ caps``, α, β ≥ 0, with ``M = G⁻¹ − D(γ of the
    unlabeled) ⪰ 0`` and ``v = (y γ of the labeled, 0) − (α − β) c``. As one conic pair: ``X = [[Z, z], [zᵀ, 1]] ⪰ 0``
    with the slack ``S = [[M, −v/2], [−vᵀ/2, τ]] ⪰ 0`` and the multipliers x = (γ, α, β, τ), one for each constraint
    ``⟨A_k, X⟩ + ξ_k − s_k = r_k``. A_k is E_kk for an unlabeled row, else ``½ (w eᵀ + e wᵀ)`` with e the last axis and
    w = y_i e_i, −c, c or −e.
    """

    G: Matrix
    """kernel matrix with regularisation and bias, shape (n, n), positive definite"""
    y: Vector
    """labels −1 and +1 of the labeled rows, which come first, shape (n_labeled,)"""
    caps: Vector
    """C of each row, infinite for a hard margin, shape (n,)"""
    balance: Vector | None
    """coefficients c of the balance constraint, shape (n,), or None for no such constraint"""
    epsilon: float
    """bound of the balance constraint, above 0"""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.G)

    @property
    def unlabeled(self) -> slice:
        """Positions of the unlabeled rows."""
        return slice(len(self.y), self.n)

    @property
    def n_multipliers(self) -> int:
        """Length of x."""
        return self.n + (3 if self.balance is not None else 1)

    @property
    def linear(self) -> NDArray[np.intp]:
        """Positions in x of the constraints that are linear in z, and of τ."""
        return np.concatenate([np.arange(len(self.y)), np.arange(self.n, self.n_multipliers)])

    @property
    def bounds(self) -> Vector:
        """Upper bounds of x."""
        return np.concatenate([self.caps, np.full(self.n_multipliers - self.n, np.inf)])

    @property
    def right(self) -> Vector:
        """Right-hand sides r of the constraints, which are the dual's objective coefficients."""
        ends = [-self.epsilon, -self.epsilon, -1.0] if self.balance is not None else [-1.0]
        return np.concatenate([np.ones(self.n), ends])

    def columns(self, matrix: Matrix) -> Matrix:
        """``matrix @ w`` for every linear constraint, shape (len(matrix), n_linear); ``matrix`` has n + 1 columns."""
        parts = [matrix[:, : len(self.y)] * self.y]
        if self.balance is not None:
            mean = (matrix[:, : self.n] @ self.balance)[:, None]
            parts += [-mean, mean]
        return np.hstack([*parts, -matrix[:, self.n :]])

    def linear_term(self, x: Vector) -> Vector:
        """v, the coefficient of z in the Lagrangian, shape (n,)."""
        v = np.zeros(self.n)
        v[: len(self.y)] = self.y * x[: len(self.y)]
        if self.balance is not None:
            v -= (x[self.n] - x[self.n + 1]) * self.balance
        return v

    def values(self, X: Matrix) -> Vector:
        """``⟨A_k, X⟩`` of every constraint."""
        values = np.empty(self.n_multipliers)
        values[self.linear] = self.columns(X[self.n :])[0]
        values[self.unlabeled] = X.diagonal()[self.unlabeled]
        return values

    def factor(self, x: Vector) -> Generator[None, None, Matrix]:
        """The Cholesky factor of ``I − √γ G √γ`` over the unlabeled rows, which is positive definite when M is; raises
        Indefinite.

        It needs G where M needs its inverse, so M⁻¹ is accurate to rounding however nearly singular G is.
        """
        roots = np.sqrt(x[self.unlabeled])
        W = self.G[self.unlabeled, self.unlabeled] * -roots
        W *= roots[:, None]
        W.reshape(-1)[:: len(W) + 1] += 1.0
        yield
        return (yield from cholesky(W))

    def quadratic_term(self, x: Vector, factor: Matrix) -> "QuadraticTerm":
        """``¼ vᵀ M⁻¹ v`` and its parts; ``factor`` is ``factor(x)``."""
        v = self.linear_term(x)
        Gv = self.G @ v
        inner = solved(factor, np.sqrt(x[self.unlabeled]) * Gv[self.unlabeled])
        return QuadraticTerm(0.25 * float(v @ Gv + inner @ inner), Gv, inner)


class QuadraticTerm(NamedTuple):
    """The dual's quadratic term ``¼ vᵀ M⁻¹ v``."""

    value: float
    Gv: Vector
    """``G v``, shape (n,)"""
    inner: Vector
    """``L⁻¹ √γ (G v)`` over the unlabeled rows, shape (n_unlabeled,)"""
