"""A primal-dual interior-point method for core.semisup.relaxation."""

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from core.semisup import dense
from core.semisup.dense import Indefinite, Matrix, Vector, cholesky, solved
from core.semisup.relaxation import Relaxation

_FEASIBLE = 1e-8
_CENTRE = 0.1
_FIRST = 2.0


class Point(NamedTuple):
    """Where the method is."""

    x: Vector
    """multipliers: γ, (α, β,) τ"""
    factor: Matrix
    """of Relaxation.factor at x"""
    X: Matrix
    """shape (n + 1, n + 1)"""
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
        self.point = Point(x, factor, X, np.where(self._signed & (slack > _CENTRE * s), slack, s), xi)

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
        point, mu = self.point, complementarity / self.n_pairs
        newton = self._newton()
        yield
        newton = yield from cholesky(newton)
        guess = yield from self._direction(newton, 0.0, None)
        primal, dual = (yield from self._primal_step(guess, 0.7)), (yield from self._dual_step(guess, 0.7))
        left = self._complementarity_after(guess, primal, dual)
        centring = min(1.0, max(1e-4, left / complementarity)) ** 2
        move = yield from self._direction(newton, centring * mu, guess)
        primal, dual = (yield from self._primal_step(move, 0.9)), (yield from self._dual_step(move, 0.9))
        x = point.x + dual * move.x
        factor = yield from self.problem.factor(x)
        self._P = yield from self._inverse_of_S(x, factor)
        self.point = Point(x, factor, point.X + primal * move.X, point.s + primal * move.s, point.xi + primal * move.xi)
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

    def _direction(self, newton: Matrix, target: float, guess: _Move | None) -> Generator[None, None, _Move]:
        """Towards complementarity ``target``; with ``guess``, corrected for what the predictor leaves out."""
        point, problem, P = self.point, self.problem, self._P
        positive, room = np.where(self._signed, point.x, 1.0), self._room(point.x)
        lower, upper = np.where(self._signed, target, 0.0), np.where(self._capped, target, 0.0)
        right = self.right - target * problem.values(P)
        carried: Matrix | None = None
        if guess is not None:
            lower, upper = lower - guess.s * guess.x, upper + guess.xi * guess.x
            carried = self._times_slack(guess.X, guess.x)
            yield
            right += self._symmetric_values(carried)
            yield
        right += lower / positive - upper / room
        dx = solved(newton, solved(newton, right), transposed=True)
        Y = self._times_slack(point.X, dx)
        if carried is not None:
            Y += carried
        yield
        T = yield from dense.product(Y, P)
        dX = np.empty_like(P)
        for part in dense.strips(P):
            np.multiply(P[part], target, out=dX[part])
            dX[part] -= point.X[part]
            dX[part] -= 0.5 * (T[part] + T[:, part].T)
            yield
        ds = lower / positive - point.s - np.where(self._signed, point.s / positive, 0.0) * dx
        return _Move(dx, dX, ds, np.asarray(upper / room - point.xi + point.xi / room * dx))

    def _times_slack(self, matrix: Matrix, dx: Vector) -> Matrix:
        """``matrix @ ΔS``, which is diagonal but for the last row and column."""
        n, inside = self.problem.n, self.problem.unlabeled
        half = -0.5 * self.problem.pull(dx)
        product: Matrix = matrix[:, n:] * np.append(half, 0.0)
        product[:, inside] -= matrix[:, inside] * dx[inside]
        product[:, n] = matrix[:, :n] @ half + matrix[:, n] * dx[-1]
        return product

    def _symmetric_values(self, Y: Matrix) -> Vector:
        """``⟨A_k, sym(Y S⁻¹)⟩``."""
        problem, P, n = self.problem, self._P, self.problem.n
        values = np.empty(problem.n_multipliers)
        values[problem.linear] = problem.columns(0.5 * (Y @ P[n] + P @ Y[n])[None])[0]
        values[problem.unlabeled] = np.einsum("ij,ij->i", Y[problem.unlabeled], P[problem.unlabeled])
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

    def _primal_step(self, move: _Move, shrink: float) -> Generator[None, None, float]:
        longest = min(dense.reach(self.point.s, move.s), dense.reach(self.point.xi, move.xi))

        def inside(length: float) -> Generator[None, None, bool]:
            there = np.empty_like(move.X)
            for part in dense.strips(there):
                np.multiply(move.X[part], length, out=there[part])
                there[part] += self.point.X[part]
                yield
            return (yield from dense.is_definite(there))

        return (yield from dense.longest(longest, inside, shrink))

    def _dual_step(self, move: _Move, shrink: float) -> Generator[None, None, float]:
        x, problem = self.point.x, self.problem
        longest = min(dense.reach(x[:-1], move.x[:-1]), dense.reach(self._room(x)[self._capped], -move.x[self._capped]))

        def inside(length: float) -> Generator[None, None, bool]:
            there = x + length * move.x
            try:
                return bool(problem.price(there, (yield from problem.factor(there))).value < there[-1])
            except Indefinite:
                return False

        return (yield from dense.longest(longest, inside, shrink))
