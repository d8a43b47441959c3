"""A primal-dual interior-point method for core.losses.relaxation."""

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


class Point(NamedTuple):
    """Where the method is."""

    x: Vector
    """multipliers: γ, (α, β,) τ"""
    factor: Matrix
    """of Relaxation.factor at x"""
    X: Matrix
    """shape (n + 1, n + 1)"""
    root: Matrix
    """Cholesky factor of X"""
    s: Vector
    """slack of ``⟨A, X⟩ ≥ r − ξ``, pairs with x; 0 for τ, which has none"""
    xi: Vector
    """ξ, pairs with bounds − x; 0 where the bound is infinite"""


class Standing(NamedTuple):
    """How far a point is from the solution."""

    primal: float
    dual: float
    infeasibility: float
    complementarity: float
    """``tr(X S) + s · x + ξ · (bounds − x)``: the gap of a feasible point"""

    @property
    def feasible(self) -> bool:
        """Whether the primal value may be believed."""
        return self.infeasibility <= _FEASIBLE


class _Move(NamedTuple):
    """A direction."""

    x: Vector
    X: Matrix
    s: Vector
    xi: Vector


class _Correction(NamedTuple):
    """What a direction leaves out: the products of its changes."""

    lower: Vector
    """``Δs Δx``"""
    upper: Vector
    """``−Δξ Δx``"""
    carried: Matrix
    """``R⁻¹ ΔX ΔS S⁻¹`` with ``X = R Rᵀ``"""


class Interior:
    """Newton's method on the perturbed optimality conditions ``X S = μ I, s x = μ, ξ (bounds − x) = μ``, with Mehrotra's predictor and corrector.

    The direction is that of Helmberg, Rendl, Vanderbei and Wolkowicz (and of Kojima, Shindoh and Hara, and Monteiro): Newton's matrix is
    ``N_kl = tr(A_k X A_l S⁻¹)``, which for the unlabeled rows is the elementwise product ``X ∘ S⁻¹``: O(n²) to make, as every A_k is E_kk or of rank
    two along the last axis. What is left of O(n³) is one inverse, two products and some Cholesky factors a step.
    """

    def __init__(self, problem: Relaxation) -> None:
        self.problem = problem
        self.bounds, self.right = problem.bounds, problem.right
        self._capped = np.isfinite(self.bounds)
        self._signed = np.arange(problem.n_multipliers) < problem.n_multipliers - 1
        self.n_pairs = problem.n + 1 + int(self._signed.sum() + self._capped.sum())
        self._root = self._inverse = self._P = np.empty((0, 0))
        self.point: Point

    def begin(self) -> Generator[None, None, None]:
        """A strictly feasible dual point, the X that is centred there, and slacks that make it feasible where they can.

        Hard labeled rows alone may be left infeasible. Raises Indefinite if G is not positive definite.
        """
        problem, n = self.problem, self.problem.n
        self._root = yield from cholesky(problem.G.copy())
        self._inverse = yield from dense.inverse(self._root)
        x, factor = yield from self._first_multipliers()
        H, _ = yield from self._inverse_of_M(x, factor)
        if problem.balance is not None:
            image = H @ problem.balance
            tilt = float(problem.pull(x) @ image) / float(problem.balance @ image)
            x[n : n + 2] = max(tilt, 0.0), max(-tilt, 0.0)
        scores = 0.5 * (H @ problem.pull(x))
        small = 1.0 / max(1.0, float(np.abs(scores).max()))
        x[: len(problem.y)] *= small
        x[n:-1] *= small
        mu = _FIRST * max(float(x[: len(problem.y)].mean()), 2.0 / H.diagonal()[problem.unlabeled].min(initial=np.inf))
        x[n:-1] += mu / problem.epsilon
        x[-1] = mu + problem.price(x, factor).value
        self._P = yield from self._inverse_of_S(x, factor)
        X = mu * self._P
        values = problem.values(X)
        s = np.where(self._signed, mu / np.where(self._signed, x, 1.0), 0.0)
        xi = np.where(self._capped, np.maximum(mu / self._room(x), s + self.right - values), 0.0)
        slack = values + xi - self.right
        root = yield from cholesky(X.copy())
        self.point = Point(x, factor, X, root, np.where(self._signed & (slack > _CENTRE * s), slack, s), xi)

    def _first_multipliers(self) -> Generator[None, None, tuple[Vector, Matrix]]:
        """γ in the middle of what is allowed: the largest eigenvalue of ``√γ G √γ`` is 1 − 1/u, or less for caps; and its factor."""
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

    def standing(self) -> Standing:
        """Values and certificates at the point; the dual one holds at any point, the primal one at a feasible one."""
        point, problem, n = self.point, self.problem, self.problem.n
        capped = self._capped[:n]
        primal = float(np.vdot(self._inverse, point.X[:n, :n]) + problem.caps[capped] @ point.xi[:n][capped])
        dual = float(self.right @ point.x + point.x[-1]) - problem.price(point.x, point.factor).value
        if problem.balance is not None:
            dual += 2 * problem.epsilon * float(point.x[n : n + 2].min())  # only α − β counts
        pairs = float(point.s @ point.x + point.xi @ self._room(point.x))
        infeasibility = float(np.abs(problem.values(point.X) + point.xi - point.s - self.right).max())
        return Standing(primal, dual, infeasibility, self._trace(point.X, point.x) + pairs)

    def scores(self) -> Vector:
        """z, shape (n,)."""
        return np.asarray(self.point.X[: self.problem.n, self.problem.n] / self.point.X[-1, -1])

    def weights(self) -> Vector:
        """``a = G⁻¹ z``, shape (n,), from which z = G a is recovered."""
        return solved(self._root, solved(self._root, self.scores()), transposed=True)

    def step(self, complementarity: float) -> Generator[None, None, float]:
        """A predictor and a corrector; returns the shorter of the two steps taken. Raises Indefinite."""
        mu = complementarity / self.n_pairs
        newton = self._newton()
        yield
        newton = yield from cholesky(newton)
        guess = yield from self._direction(newton, 0.0, None)
        primal, dual = yield from self._reach(guess)
        left = self._complementarity_after(guess, min(1.0, primal), min(1.0, dual)) / complementarity
        shorter = min(1.0, primal, dual)
        centring = min(1.0, max(_LEAST_CENTRING, max(0.0, left) ** max(1.0, 3.0 * shorter**2)))
        move = yield from self._direction(newton, centring * mu, (yield from self._correction(guess)))
        del guess, newton
        primal, dual = yield from self._reach(move)
        share = 0.9 + 0.09 * min(1.0, primal, dual)
        return (yield from self._go(move, min(1.0, share * primal), min(1.0, share * dual)))

    def _go(self, move: _Move, primal: float, dual: float) -> Generator[None, None, float]:
        """Steps of these lengths, or of shorter ones if rounding asks for them; returns the shorter of both."""
        point = self.point

        def primal_end(length: float) -> Generator[None, None, tuple[Matrix, Matrix]]:
            X = np.empty_like(point.X)
            for part in dense.strips(X):
                np.multiply(move.X[part], length, out=X[part])
                X[part] += point.X[part]
                yield
            return X, (yield from cholesky(X.copy()))

        def dual_end(length: float) -> Generator[None, None, tuple[Vector, Matrix, Matrix]]:
            x = point.x + length * move.x
            factor = yield from self.problem.factor(x)
            return x, factor, (yield from self._inverse_of_S(x, factor))

        primal, (X, root) = yield from dense.retreat(primal, primal_end)
        dual, (x, factor, self._P) = yield from dense.retreat(dual, dual_end)
        self.point = Point(x, factor, X, root, point.s + primal * move.s, point.xi + primal * move.xi)
        return min(primal, dual)

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
        price = self.problem.price(x, factor)
        z = 0.5 * (price.Gv + B @ price.inner)
        slack = x[-1] - price.value
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
        """N and the scalar pairs on its diagonal; lower triangle and all."""
        point, problem, P = self.point, self.problem, self._P
        inside, linear, n = problem.unlabeled, problem.linear, problem.n
        N = np.empty((problem.n_multipliers,) * 2)
        N[inside, inside] = point.X[inside, inside] * P[inside, inside]
        XV, PV = problem.columns(point.X), problem.columns(P)
        mixed = 0.5 * (XV[inside] * P[inside, n, None] + point.X[inside, n, None] * PV[inside])
        N[inside, linear], N[linear, inside] = mixed, mixed.T
        crossed = np.outer(XV[n], PV[n])
        both = point.X[n, n] * problem.columns(PV.T) + P[n, n] * problem.columns(XV.T) + crossed + crossed.T
        N[np.ix_(linear, linear)] = 0.25 * both
        N.reshape(-1)[:: len(N) + 1] += np.where(self._signed, point.s / np.where(self._signed, point.x, 1.0), 0.0) + point.xi / self._room(point.x)
        return N

    def _direction(self, newton: Matrix, target: float, correction: _Correction | None) -> Generator[None, None, _Move]:
        """Towards complementarity ``target``, corrected for what the predictor leaves out.

        ``ΔX = target S⁻¹ − X − sym(X ΔS S⁻¹)``. Between the small eigenvalues of X and the large ones of S⁻¹ the last term is a difference of numbers
        that are larger by orders of magnitude, unless X is taken as ``R Rᵀ`` and its left factor is multiplied last.
        """
        point, problem, P = self.point, self.problem, self._P
        positive, room = np.where(self._signed, point.x, 1.0), self._room(point.x)
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
        T = yield from dense.upper_product(point.root, image)
        del image
        if correction is not None:
            T += correction.carried
        yield
        T = yield from dense.lower_product(point.root, T)
        dX = np.empty_like(P)
        for part in dense.strips(P):
            np.multiply(P[part], target, out=dX[part])
            dX[part] -= point.X[part]
            dX[part] -= 0.5 * (T[part] + T[:, part].T)
            yield
        ds = lower / positive - point.s - np.where(self._signed, point.s / positive, 0.0) * dx
        return _Move(dx, dX, ds, np.asarray(upper / room - point.xi + point.xi / room * dx))

    def _correction(self, guess: _Move) -> Generator[None, None, _Correction]:
        """Of a predictor, whose X is used up."""
        yield from dense.divide(guess.X, self.point.root)
        carried = yield from dense.product(guess.X.T, self._slack_image(guess.x))
        return _Correction(guess.s * guess.x, -guess.xi * guess.x, carried)

    def _slack_image(self, dx: Vector) -> Matrix:
        """``ΔS S⁻¹``; ΔS is diagonal but for its last row and column."""
        n, inside, P = self.problem.n, self.problem.unlabeled, self._P
        half = -0.5 * self.problem.pull(dx)
        image: Matrix = np.outer(np.append(half, dx[-1]), P[n])
        image[inside] -= dx[inside, None] * P[inside]
        image[n] += half @ P[:n]
        return image

    def _values_from_root(self, carried: Matrix) -> Vector:
        """``⟨A_k, sym(R carried)⟩``."""
        problem, R, n = self.problem, self.point.root, self.problem.n
        inside, values = problem.unlabeled, np.empty(problem.n_multipliers)
        values[problem.linear] = problem.columns(0.5 * (R[n] @ carried + R @ carried[:, n])[None])[0]
        values[inside] = np.einsum("ij,ji->i", R[inside], carried[:, inside])
        return values

    def _trace(self, X: Matrix, x: Vector) -> float:
        """``tr(X S)``, S at the multipliers x; linear in X."""
        n, inside = self.problem.n, self.problem.unlabeled
        fixed = np.vdot(self._inverse, X[:n, :n]) - x[inside] @ X.diagonal()[inside]
        return float(fixed - self.problem.pull(x) @ X[:n, n] + x[-1] * X[n, n])

    def _complementarity_after(self, move: _Move, primal: float, dual: float) -> float:
        """What is left of it after a step."""
        point = self.point
        x = point.x + dual * move.x
        pairs = (point.s + primal * move.s) @ x + (point.xi + primal * move.xi) @ self._room(x)
        return self._trace(point.X, x) + primal * self._trace(move.X, x) + float(pairs)

    def _reach(self, move: _Move) -> Generator[None, None, tuple[float, float]]:
        """How far X, s and ξ, and how far the multipliers and S, can go along ``move``; nearly."""
        point, n, inside, P = self.point, self.problem.n, self.problem.unlabeled, self._P
        half = -0.5 * self.problem.pull(move.x)

        def slack_change(q: Vector) -> Vector:
            image: Vector = np.append(half * q[n], half @ q[:n] + move.x[-1] * q[n])
            image[inside] -= move.x[inside] * q[inside]
            return image

        def unrooted(z: Vector) -> Vector:
            return solved(point.root, solved(point.root, z), transposed=True)

        least = yield from dense.least_eigenvalue(lambda q: np.asarray(move.X @ q), unrooted, n + 1)
        primal = min(_until(least), dense.reach(point.s, move.s), dense.reach(point.xi, move.xi))
        least = yield from dense.least_eigenvalue(slack_change, lambda z: np.asarray(P @ z), n + 1)
        room = dense.reach(self._room(point.x)[self._capped], -move.x[self._capped])
        return primal, min(_until(least), dense.reach(point.x[:-1], move.x[:-1]), room)


def _until(least: float) -> float:
    """How far a positive definite matrix can go along a change that has this least eigenvalue beside it."""
    return -1.0 / least if least < 0 else np.inf
