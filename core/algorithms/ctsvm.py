"""The transductive SVM by convex relaxation (Xu, Jin, Zhu, King & Lyu 2007)."""

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from core.engine.requests import KernelRange, KernelRows, Phase, Procedure, Report, Steps, Stopped, Yield
from core.errors import InvalidOption
from core.kernels.cache import RowCache
from core.kernels.function import Kernel
from core.losses.balance import positive_fraction
from core.losses.relaxation import Relaxation
from core.numerics.blocked_lapack import Indefinite, Matrix, Vector
from core.optimizers.interior_point import Interior
from core.optimizers.smo import check_model_size, empty_result, kernel_spec, settled_C
from core.options.relaxation import CtsvmOptions
from core.problem import Expansion, Problem, Result, Status

_NEGLIGIBLE = 1e-9
"""share of the sum of contributions that the rows left out of an expansion may add up to"""


def ctsvm(problem: Problem, options: CtsvmOptions, init: Vector | None = None, /) -> Steps:
    """Convex relaxation of the transductive SVM, solved to a certified duality gap.

    Objective: ``zᵀ G⁻¹ z + Σ C_i ξ_i`` over scores z, with ``y_i z_i ≥ 1 − ξ_i`` for labeled and ``z_j² ≥ 1 − ξ_j`` for
    unlabeled rows, relaxed by ``Z ⪰ z zᵀ`` in place of ``Z = z zᵀ`` (core.losses.relaxation); without ξ if
    ``hard_margin``. The losses are a sum, against |w|² and not ½ |w|² as elsewhere. Constraint: ``|c · z| ≤ epsilon``,
    c · z being the mean score of the labeled rows, weighted so that ``fraction`` of them is positive, less that of the
    unlabeled ones. Symbols: ``G = K + regularisation · mean(diag K) · I + bias²``, C_i = ``C`` or ``C_u`` times the
    cost of row i. Stopping: certified relative duality gap of ``tolerance``. The trace has the gap as
    ``stage_objective``, the dual bound as ``objective``. Returns: the bound, below which no labeling's value lies, as
    the objective; scores z of the unlabeled rows; ``f(x) = Σ a_i k(x_i, x) + b`` with ``a = G⁻¹ z``, ``b = bias² Σ a``.
    The problem is convex, so ``init`` would change nothing. Raises InvalidOption if G cannot be inverted in float64.
    Source: Xu, Jin, Zhu, King & Lyu 2007, (8), (9) and (12), as derived in docs/ctsvm.md.
    """
    kernel = Kernel(options.kernel)
    search: _Search | None = None
    status = Status.CANCELLED
    try:
        cache: RowCache = yield KernelRange(
            kernel_spec(options), 0, problem.rows.n_rows, None, 4 * problem.rows.n_rows**2
        )
        if not cache.gram.fits_float32:
            return empty_result(options, problem, Status.NUMERICAL_ERROR)
        kernel = cache.gram.kernel
        # nearly all rows have a weight
        yield from check_model_size(kernel, np.arange(problem.rows.n_rows))
        K = yield from _kernel_matrix(cache)
        C = yield from settled_C(options, problem, 4 * problem.n_labeled**2)
        search = _Search(Interior(_relaxation(problem, options, K, C)), options)
        del K
        status = yield from search.run()
    except Stopped:
        pass
    except Indefinite as error:
        message = (
            f"{options.regularisation:g} is too small: the kernel matrix of the documents has no inverse in "
            "the precision of its values: raise it"
        )
        raise InvalidOption("regularisation", message) from error
    if search is None or not search.ready:
        return empty_result(options, problem, status)
    scores = search.scores[problem.n_labeled :]
    return Result(
        search.expansion(kernel, options.bias),
        scores,
        search.bound,
        status if np.isfinite(scores).all() else Status.NUMERICAL_ERROR,
    )


class _Search:
    """The state of one run: the interior-point method and the best bounds so far."""

    def __init__(self, interior: Interior, options: CtsvmOptions) -> None:
        self._interior, self._options = interior, options
        self.bound, self._least = -math.inf, math.inf
        self._first = math.nan
        self.ready = False

    @property
    def scores(self) -> Vector:
        """Scores z of all rows, shape (n_rows,)."""
        return self._interior.scores()

    def run(self) -> Procedure[Status]:
        yield from _paused(self._interior.initialise())
        self.ready = True
        for iteration in range(self._options.max_iterations + 1):
            residuals = self._interior.residuals()
            self.bound = max(self.bound, residuals.dual)
            if not residuals.feasible:
                yield Report(Phase("ctsvm").then("feasible"), iteration, residuals.infeasibility, self.bound, 0.0)
            else:
                self._least = min(self._least, residuals.primal)
                gap = self._least - self.bound
                yield Report(Phase("ctsvm"), iteration, gap, self.bound, self._fraction(gap))
                if gap <= self._options.tolerance * abs(self.bound):
                    return Status.CONVERGED
            if iteration < self._options.max_iterations:
                try:
                    yield from _paused(self._interior.step(residuals.complementarity))
                except Indefinite:  # rounding leaves no step that is long enough
                    break
        return Status.ITERATION_LIMIT

    def expansion(self, kernel: Kernel, bias: float) -> Expansion:
        """``a = G⁻¹ z`` without rows that contribute next to nothing together."""
        weights = self._interior.weights()
        largest = np.abs(weights) * np.sqrt(self._interior.problem.G.diagonal())
        order = np.argsort(largest, kind="stable")
        left_out = order[np.cumsum(largest[order]) <= _NEGLIGIBLE * largest.sum()]
        kept = np.setdiff1d(np.arange(len(weights)), left_out)
        return Expansion(kept, weights[kept], bias**2 * float(weights.sum()), kernel)

    def _fraction(self, gap: float) -> float:
        """Share of the orders of magnitude between the first gap and the tolerance that are done."""
        target = self._options.tolerance * abs(self.bound)
        if math.isnan(self._first):
            self._first = gap
        if not gap > target > 0 or self._first <= target:
            return 1.0
        return math.log(self._first / gap) / math.log(self._first / target)


def _paused(steps: Generator[None, None, Any]) -> Procedure[None]:
    for _ in steps:
        yield Yield()


def _kernel_matrix(cache: RowCache) -> Procedure[Matrix]:
    """K in float64, exactly symmetric, shape (n, n); solvers that share the cache compute its rows once."""
    n = cache.gram.n_points
    K = np.empty((n, n))
    for start in range(0, n, cache.batch_rows):
        positions = np.arange(start, min(start + cache.batch_rows, n))
        yield KernelRows(cache, positions)
        K[positions] = cache.slots.rows[cache.slots.slot_of[positions]]
    K += K.T.copy()
    K *= 0.5
    return K


def _relaxation(problem: Problem, options: CtsvmOptions, K: Matrix, C: float) -> Relaxation:
    """The relaxation of a problem.

    K is overwritten by its G. Raises InvalidOption if the bias leaves no digit to the kernel's differences.
    """
    n, n_labeled, mean = len(K), problem.n_labeled, float(K.diagonal().mean())
    ridge = options.regularisation * (mean or 1.0)
    if ridge <= np.finfo(float).eps * n * (options.bias**2 + mean):
        message = (
            f"{options.bias:g} is too large beside kernel values of {mean:.1g} and a regularisation of "
            f"{options.regularisation:g}"
        )
        raise InvalidOption(
            "bias", f"{message}: no digit is left of what tells documents apart; lower it, or raise regularisation"
        )
    K.reshape(-1)[:: n + 1] += ridge
    K += options.bias**2
    unlabeled_cap = C if options.C_u is None else options.C_u
    caps = np.repeat([C, unlabeled_cap], [n_labeled, n - n_labeled]) * problem.costs
    if options.hard_margin:
        caps = np.full(n, np.inf)
    balance = (
        None if options.epsilon is None or n == n_labeled else _balance(problem, positive_fraction(problem, options))
    )
    return Relaxation(K, problem.y, caps, balance, options.epsilon or 1.0)


def _balance(problem: Problem, fraction: float) -> Vector:
    """c of shape (n_rows,) in (6): the mean of the labeled rows, reweighted to ``fraction`` positive ones, less the
    mean of the unlabeled rows.
    """
    c = problem.weights
    found = problem.labeled_fraction()
    if 0 < found < 1:
        c[: problem.n_labeled] *= np.where(problem.y > 0, fraction / found, (1 - fraction) / (1 - found))
    c[problem.n_labeled :] *= -1.0
    return c
