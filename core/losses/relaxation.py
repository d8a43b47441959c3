"""The convex relaxation of the transductive SVM as a pair of semidefinite programmes, on a dense kernel matrix."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.numerics.blocked_lapack import Matrix, Vector, cholesky, solved


@dataclass(frozen=True)
class Relaxation:
    """The programme (12) of Xu et al. 2007, or (9) where caps are infinite; see docs/ctsvm.md for its derivation.

    Primal: minimise ``tr(G⁻¹ Z) + Σ caps · ξ`` over scores z and Z ⪰ z zᵀ (in place of Z = z zᵀ), ξ ≥ 0, under
    ``y_i z_i ≥ 1 − ξ_i`` (labeled), ``Z_jj ≥ 1 − ξ_j`` (unlabeled), ``|balance · z| ≤ epsilon``.
    Dual: maximise ``Σγ − ε(α + β) − ¼ vᵀ M⁻¹ v`` over ``0 ≤ γ ≤ caps``, α, β ≥ 0, with ``M = G⁻¹ − D(γ of the unlabeled) ⪰ 0`` and
    ``v = (y γ of the labeled, 0) − (α − β) c``.
    As one pair: ``X = [[Z, z], [zᵀ, 1]] ⪰ 0`` and its slack ``S = [[M, −v/2], [−vᵀ/2, τ]] ⪰ 0``, with the multipliers x = (γ, α, β, τ), each of a
    constraint ``⟨A_k, X⟩ + ξ_k − s_k = r_k``. A_k is E_kk for an unlabeled row, else ``½ (w eᵀ + e wᵀ)`` with
    e the last axis and w = y_i e_i, −c, c or −e.
    """

    G: Matrix
    """shape (n, n), positive definite: kernel, regularisation and bias"""
    y: Vector
    """shape (n_labeled,): the labeled rows come first"""
    caps: Vector
    """shape (n,): C of each row; infinite for a hard margin"""
    balance: Vector | None
    """c, shape (n,), or None for no such constraint"""
    epsilon: float
    """above 0"""

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.G)

    @property
    def unlabeled(self) -> slice:
        """Where the unlabeled rows are."""
        return slice(len(self.y), self.n)

    @property
    def n_multipliers(self) -> int:
        """Length of x."""
        return self.n + (3 if self.balance is not None else 1)

    @property
    def linear(self) -> NDArray[np.intp]:
        """Positions in x of the constraints that are linear in z (and of τ)."""
        return np.concatenate([np.arange(len(self.y)), np.arange(self.n, self.n_multipliers)])

    @property
    def bounds(self) -> Vector:
        """Upper bounds of x."""
        return np.concatenate([self.caps, np.full(self.n_multipliers - self.n, np.inf)])

    @property
    def right(self) -> Vector:
        """r: what the constraints ask, and what a multiplier is worth."""
        ends = [-self.epsilon, -self.epsilon, -1.0] if self.balance is not None else [-1.0]
        return np.concatenate([np.ones(self.n), ends])

    def columns(self, matrix: Matrix) -> Matrix:
        """``matrix @ w`` for every linear constraint, shape (len(matrix), n_linear); ``matrix`` has n + 1 columns."""
        parts = [matrix[:, : len(self.y)] * self.y]
        if self.balance is not None:
            mean = (matrix[:, : self.n] @ self.balance)[:, None]
            parts += [-mean, mean]
        return np.hstack([*parts, -matrix[:, self.n :]])

    def pull(self, x: Vector) -> Vector:
        """v of shape (n,)."""
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
        """The Cholesky factor of ``I − √γ G √γ`` over the unlabeled rows, which is positive definite when M is; raises Indefinite.

        It takes G, where M would take its inverse: so M⁻¹ is exact to rounding however nearly singular G is.
        """
        roots = np.sqrt(x[self.unlabeled])
        W = self.G[self.unlabeled, self.unlabeled] * -roots
        W *= roots[:, None]
        W.reshape(-1)[:: len(W) + 1] += 1.0
        yield
        return (yield from cholesky(W))

    def price(self, x: Vector, factor: Matrix) -> "Price":
        """``¼ vᵀ M⁻¹ v`` and what it is made of."""
        v = self.pull(x)
        Gv = self.G @ v
        inner = solved(factor, np.sqrt(x[self.unlabeled]) * Gv[self.unlabeled])
        return Price(0.25 * float(v @ Gv + inner @ inner), Gv, inner)


class Price(NamedTuple):
    """What the pull v of the labeled rows and of the balance costs."""

    value: float
    Gv: Vector
    inner: Vector
    """``L⁻¹ √γ (G v)`` over the unlabeled rows"""
