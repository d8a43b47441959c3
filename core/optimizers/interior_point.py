"""Primal-dual interior-point method (HKM direction, predictor and corrector) for the semidefinite pair of
core.losses.relaxation.
"""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from core.losses.relaxation import Relaxation
from core.numerics import blocked_lapack as dense
from core.numerics.blocked_lapack import Indefinite, Matrix, Vector, cholesky, solved

_FEASIBLE = 1e-8
_CENTRE = 0.1
_FIRST = 2.0
_LEAST_CENTRING = 1e-4


class Variables(NamedTuple):
    """Primal and dual variables of one iteration."""

    x: Vector
    """dual multipliers: γ, (α, β,) τ"""
    factor: Matrix
    """Cholesky factor that Relaxation.factor returns at x"""
    X: Matrix
    """primal matrix, shape (n + 1, n + 1)"""
    root: Matrix
    """Cholesky factor of X"""
    s: Vector
    """slack of ``⟨A, X⟩ ≥ r − ξ``, complementary to x; 0 for τ, which has none"""
    xi: Vector
    """ξ, complementary to bounds − x; 0 where the bound is infinite"""


class Residuals(NamedTuple):
    """Objective values and residuals of some variables: how far these are from the solution."""

    primal: float
    """primal objective; a bound only where ``feasible``"""
    dual: float
    """dual objective; a lower bound always"""
    infeasibility: float
    """largest violation of a primal constraint"""
    complementarity: float
    """``tr(X S) + s · x + ξ · (bounds − x)``, which is the duality gap of feasible variables"""

    @property
    def feasible(self) -> bool:
        """Whether the primal objective is one of a feasible X."""
        return self.infeasibility <= _FEASIBLE


class _Direction(NamedTuple):
    """A change of the variables."""

    x: Vector
    X: Matrix
    s: Vector
    xi: Vector


class _Correction(NamedTuple):
    """Second-order terms of the complementarity conditions, which a direction leaves out."""

    lower: Vector
    """``Δs Δx``"""
    upper: Vector
    """``−Δξ Δx``"""
    carried: Matrix
    """``R⁻¹ ΔX ΔS S⁻¹`` with ``X = R Rᵀ``"""


class Interior:
    """Newton's method on the perturbed optimality conditions ``X S = μ I, s x = μ, ξ (bounds − x) = μ``, with
    Mehrotra's predictor and corrector.

    The direction is HKM: that of Helmberg, Rendl, Vanderbei and Wolkowicz, of Kojima, Shindoh and Hara, and of
    Monteiro. Newton's matrix is ``N_kl = tr(A_k X A_l S⁻¹)``. For the unlabeled rows it is the elementwise product ``X
    ∘ S⁻¹``; it takes O(n²), because every A_k is E_kk or of rank two along the last axis. A step takes O(n³) for one
    inverse, two products and some Cholesky factors.
    """

    def __init__(self, problem: Relaxation) -> None:
        self.problem = problem
        self.bounds, self.right = problem.bounds, problem.right
        self._capped = np.isfinite(self.bounds)
        self._signed = np.arange(problem.n_multipliers) < problem.n_multipliers - 1
        self.n_pairs = problem.n + 1 + int(self._signed.sum() + self._capped.sum())
        self._root = self._inverse = self._P = np.empty((0, 0))
        self.variables: Variables

    def initialise(self) -> Generator[None, None, None]:
        """Set strictly feasible dual variables, the X that is centred there, and slacks that make X feasible where they
        can.

        Only labeled rows with a hard margin may stay infeasible. Raises Indefinite if G is not positive definite.
        """
        problem = self.problem
        self._root = yield from cholesky(problem.G.copy())
        self._inverse = yield from dense.inverse(self._root)
        x, factor = yield from self._first_multipliers()
        mu = yield from self._complete(x, factor)
        self._P = yield from self._inverse_of_S(x, factor)
        # all pairs are centred: X S = μ I, and every scalar product is μ
        X = mu * self._P
        values = problem.values(X)
        s = np.where(self._signed, mu / self._positive(x), 0.0)
        xi = np.where(self._capped, np.maximum(mu / self._room(x), s + self.right - values), 0.0)
        # a slack that X leaves by itself, and that is not far below the centre, makes X feasible
        slack = values + xi - self.right
        s = np.where(self._signed & (slack > _CENTRE * s), slack, s)
        root = yield from cholesky(X.copy())
        self.variables = Variables(x, factor, X, root, s, xi)

    def _first_multipliers(self) -> Generator[None, None, tuple[Vector, Matrix]]:
        """γ at the centre of its range, and the factor there: the largest eigenvalue of ``√γ G √γ`` is 1 − 1/u, or less
        where caps bound γ.
        """
        problem, inside = self.problem, self.problem.unlabeled
        x = np.zeros(problem.n_multipliers)
        x[: problem.n] = np.minimum(0.5 * problem.caps, 1.0 / problem.G.diagonal())
        block = problem.G[inside, inside]
        if len(block):
            largest = yield from dense.largest_eigenvalue(block)
            x[inside] = np.minimum(0.5 * problem.caps[inside], (1 - 1 / max(2, len(block))) / largest)
        while True:
            try:
                return x, (yield from problem.factor(x))
            except Indefinite:
                x[inside] *= 0.5

    def _complete(self, x: Vector, factor: Matrix) -> Generator[None, None, float]:
        """Set the multipliers of the balance constraint and τ, and shrink the labeled rows' multipliers; returns μ, the
        complementarity of each pair.
        """
        problem, n, labeled = self.problem, self.problem.n, slice(len(self.problem.y))
        H, _ = yield from self._inverse_of_M(x, factor)
        if problem.balance is not None:
            # the α − β by which the scores meet the balance constraint
            image = H @ problem.balance
            tilt = float(problem.linear_term(x) @ image) / float(problem.balance @ image)
            x[n : n + 2] = max(tilt, 0.0), max(-tilt, 0.0)
        # no score is beyond the margin then
        scores = 0.5 * (H @ problem.linear_term(x))
        shrink = 1.0 / max(1.0, float(np.abs(scores).max()))
        x[labeled] *= shrink
        x[n:-1] *= shrink
        least = float(H.diagonal()[problem.unlabeled].min(initial=np.inf))
        mu = _FIRST * max(float(x[labeled].mean()), 2.0 / least)
        x[n:-1] += mu / problem.epsilon
        x[-1] = mu + problem.quadratic_term(x, factor).value
        return mu

    def residuals(self) -> Residuals:
        """Objective values and residuals; the dual value is a bound always, the primal one only where the variables are
        feasible.
        """
        variables, problem, n = self.variables, self.problem, self.problem.n
        capped = self._capped[:n]
        primal = float(np.vdot(self._inverse, variables.X[:n, :n]) + problem.caps[capped] @ variables.xi[:n][capped])
        dual = (
            float(self.right @ variables.x + variables.x[-1])
            - problem.quadratic_term(variables.x, variables.factor).value
        )
        if problem.balance is not None:
            dual += 2 * problem.epsilon * float(variables.x[n : n + 2].min())  # only α − β counts
        pairs = float(variables.s @ variables.x + variables.xi @ self._room(variables.x))
        infeasibility = float(np.abs(problem.values(variables.X) + variables.xi - variables.s - self.right).max())
        return Residuals(primal, dual, infeasibility, self._trace(variables.X, variables.x) + pairs)

    def scores(self) -> Vector:
        """Scores z, shape (n,)."""
        return np.asarray(self.variables.X[: self.problem.n, self.problem.n] / self.variables.X[-1, -1])

    def weights(self) -> Vector:
        """Weights ``a = G⁻¹ z``, shape (n,), so that z = G a."""
        return solved(self._root, solved(self._root, self.scores()), transposed=True)

    def step(self, complementarity: float) -> Generator[None, None, float]:
        """Take a predictor and a corrector; returns the shorter of the primal and the dual step length.

        Raises Indefinite.
        """
        mu = complementarity / self.n_pairs
        newton = self._newton()
        yield
        newton = yield from cholesky(newton)
        guess = yield from self._direction(newton, 0.0, None)
        primal, dual = yield from self._max_steps(guess)
        left = self._complementarity_after(guess, min(1.0, primal), min(1.0, dual)) / complementarity
        shorter = min(1.0, primal, dual)
        centring = min(1.0, max(_LEAST_CENTRING, max(0.0, left) ** max(1.0, 3.0 * shorter**2)))
        direction = yield from self._direction(newton, centring * mu, (yield from self._correction(guess)))
        del guess, newton
        primal, dual = yield from self._max_steps(direction)
        share = 0.9 + 0.09 * min(1.0, primal, dual)
        return (yield from self._advance(direction, min(1.0, share * primal), min(1.0, share * dual)))

    def _advance(self, direction: _Direction, primal: float, dual: float) -> Generator[None, None, float]:
        """Take steps of these lengths, or shorter ones where rounding leaves the cone; returns the shorter of both."""
        variables = self.variables

        def primal_end(length: float) -> Generator[None, None, tuple[Matrix, Matrix]]:
            X = np.empty_like(variables.X)
            for part in dense.strips(X):
                np.multiply(direction.X[part], length, out=X[part])
                X[part] += variables.X[part]
                yield
            return X, (yield from cholesky(X.copy()))

        def dual_end(length: float) -> Generator[None, None, tuple[Vector, Matrix, Matrix]]:
            x = variables.x + length * direction.x
            factor = yield from self.problem.factor(x)
            return x, factor, (yield from self._inverse_of_S(x, factor))

        primal, (X, root) = yield from dense.backtrack(primal, primal_end)
        dual, (x, factor, self._P) = yield from dense.backtrack(dual, dual_end)
        self.variables = Variables(
            x, factor, X, root, variables.s + primal * direction.s, variables.xi + primal * direction.xi
        )
        return min(primal, dual)

    def _positive(self, x: Vector) -> Vector:
        """x, 1 in the place of τ, which has no slack and may have any sign."""
        return np.where(self._signed, x, 1.0)

    def _room(self, x: Vector) -> Vector:
        """``bounds − x``, 1 where there is no bound."""
        return np.where(self._capped, np.where(self._capped, self.bounds, 0.0) - x, 1.0)

    def _inverse_of_M(self, x: Vector, factor: Matrix) -> Generator[None, None, tuple[Matrix, Matrix]]:
        """``M⁻¹ = G + B Bᵀ`` with ``B = G √γ L⁻ᵀ`` over the unlabeled rows, and B."""
        G, inside = self.problem.G, self.problem.unlabeled
        H, B, roots = np.empty_like(G), np.empty((len(G), len(factor))), np.sqrt(x[inside])
        for part in dense.strips(G):
            H[part] = G[part]
            np.multiply(G[part, inside], roots, out=B[part])
            yield
        yield from dense.add_images(factor, B, H)
        return H, B

    def _inverse_of_S(self, x: Vector, factor: Matrix) -> Generator[None, None, Matrix]:
        """S⁻¹, shape (n + 1, n + 1)."""
        n = self.problem.n
        H, B = yield from self._inverse_of_M(x, factor)
        quadratic = self.problem.quadratic_term(x, factor)
        z = 0.5 * (quadratic.Gv + B @ quadratic.inner)
        slack = x[-1] - quadratic.value
        if slack <= 0:
            raise Indefinite
        yield
        P = np.empty((n + 1, n + 1))
        for part in dense.strips(H):
            np.multiply(z[part, None], z / slack, out=P[part, :n])
            P[part, :n] += H[part]
            yield
        P[n, :n] = P[:n, n] = z / slack
        P[n, n] = 1.0 / slack
        return P

    def _newton(self) -> Matrix:
        """Newton's matrix N with the scalar pairs on its diagonal, both triangles."""
        variables, problem, P = self.variables, self.problem, self._P
        inside, linear, n = problem.unlabeled, problem.linear, problem.n
        N = np.empty((problem.n_multipliers,) * 2)
        N[inside, inside] = variables.X[inside, inside] * P[inside, inside]
        XV, PV = problem.columns(variables.X), problem.columns(P)
        mixed = 0.5 * (XV[inside] * P[inside, n, None] + variables.X[inside, n, None] * PV[inside])
        N[inside, linear], N[linear, inside] = mixed, mixed.T
        crossed = np.outer(XV[n], PV[n])
        both = variables.X[n, n] * problem.columns(PV.T) + P[n, n] * problem.columns(XV.T) + crossed + crossed.T
        N[np.ix_(linear, linear)] = 0.25 * both
        scalar = variables.s / self._positive(variables.x) + variables.xi / self._room(variables.x)
        N.reshape(-1)[:: len(N) + 1] += scalar
        return N

    def _direction(
        self, newton: Matrix, target: float, correction: _Correction | None
    ) -> Generator[None, None, _Direction]:
        """The direction towards complementarity ``target``, with the second-order ``correction`` if there is one.

        ``ΔX = target S⁻¹ − X − sym(X ΔS S⁻¹)``. The last term cancels badly between the small eigenvalues of X and the
        large ones of S⁻¹. So X enters it as ``R Rᵀ``, and its left factor is multiplied last.
        """
        variables, problem, P = self.variables, self.problem, self._P
        positive, room = self._positive(variables.x), self._room(variables.x)
        lower, upper = np.where(self._signed, target, 0.0), np.where(self._capped, target, 0.0)
        right = self.right - target * problem.values(P)
        if correction is not None:
            lower, upper = lower - correction.lower, upper - correction.upper
            right += self._values_from_root(correction.carried)
            yield
        right += lower / positive - upper / room
        dx = solved(newton, solved(newton, right), transposed=True)
        image = self._slack_image(dx)
        yield
        T = yield from dense.upper_product(variables.root, image)
        del image
        if correction is not None:
            T += correction.carried
        yield
        T = yield from dense.lower_product(variables.root, T)
        dX = np.empty_like(P)
        for part in dense.strips(P):
            np.multiply(P[part], target, out=dX[part])
            dX[part] -= variables.X[part]
            dX[part] -= 0.5 * (T[part] + T[:, part].T)
            yield
        ds = lower / positive - variables.s - variables.s / positive * dx
        dxi = np.asarray(upper / room - variables.xi + variables.xi / room * dx)
        return _Direction(dx, dX, ds, dxi)

    def _correction(self, guess: _Direction) -> Generator[None, None, _Correction]:
        """The second-order terms of a predictor; its X is overwritten."""
        yield from dense.divide(guess.X, self.variables.root)
        carried = yield from dense.product(guess.X.T, self._slack_image(guess.x))
        return _Correction(guess.s * guess.x, -guess.xi * guess.x, carried)

    def _slack_image(self, dx: Vector) -> Matrix:
        """``ΔS S⁻¹``; ΔS is diagonal except in its last row and column."""
        n, inside, P = self.problem.n, self.problem.unlabeled, self._P
        half = -0.5 * self.problem.linear_term(dx)
        image: Matrix = np.outer(np.append(half, dx[-1]), P[n])
        image[inside] -= dx[inside, None] * P[inside]
        image[n] += half @ P[:n]
        return image

    def _values_from_root(self, carried: Matrix) -> Vector:
        """``⟨A_k, sym(R carried)⟩``."""
        problem, R, n = self.problem, self.variables.root, self.problem.n
        inside, values = problem.unlabeled, np.empty(problem.n_multipliers)
        values[problem.linear] = problem.columns(0.5 * (R[n] @ carried + R @ carried[:, n])[None])[0]
        values[inside] = np.einsum("ij,ji->i", R[inside], carried[:, inside])
        return values

    def _trace(self, X: Matrix, x: Vector) -> float:
        """``tr(X S)``, S at the multipliers x; linear in X."""
        n, inside = self.problem.n, self.problem.unlabeled
        fixed = np.vdot(self._inverse, X[:n, :n]) - x[inside] @ X.diagonal()[inside]
        return float(fixed - self.problem.linear_term(x) @ X[:n, n] + x[-1] * X[n, n])

    def _complementarity_after(self, direction: _Direction, primal: float, dual: float) -> float:
        """Complementarity after steps of these lengths."""
        variables = self.variables
        x, s, xi = (
            variables.x + dual * direction.x,
            variables.s + primal * direction.s,
            variables.xi + primal * direction.xi,
        )
        pairs = s @ x + xi @ self._room(x)
        return self._trace(variables.X, x) + primal * self._trace(direction.X, x) + float(pairs)

    def _max_steps(self, direction: _Direction) -> Generator[None, None, tuple[float, float]]:
        """Nearly the largest steps along ``direction``: the primal one of X, s and ξ, the dual one of the multipliers
        and S.
        """
        variables, n, inside, P = self.variables, self.problem.n, self.problem.unlabeled, self._P
        half = -0.5 * self.problem.linear_term(direction.x)

        def slack_change(q: Vector) -> Vector:
            image: Vector = np.append(half * q[n], half @ q[:n] + direction.x[-1] * q[n])
            image[inside] -= direction.x[inside] * q[inside]
            return image

        def unrooted(z: Vector) -> Vector:
            return solved(variables.root, solved(variables.root, z), transposed=True)

        least = yield from dense.least_eigenvalue(lambda q: np.asarray(direction.X @ q), unrooted, n + 1)
        primal = min(
            _max_step_of_matrix(least),
            dense.max_step(variables.s, direction.s),
            dense.max_step(variables.xi, direction.xi),
        )
        least = yield from dense.least_eigenvalue(slack_change, lambda z: np.asarray(P @ z), n + 1)
        dual = min(
            _max_step_of_matrix(least),
            dense.max_step(variables.x[:-1], direction.x[:-1]),
            dense.max_step(self._room(variables.x)[self._capped], -direction.x[self._capped]),
        )
        return primal, dual


def _max_step_of_matrix(least: float) -> float:
    """The largest step of a positive definite matrix along a change with this ``least`` eigenvalue relative to it."""
    return -1.0 / least if least < 0 else np.inf
