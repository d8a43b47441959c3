"""The transductive SVM by the concave-convex procedure, in the space of a kernel (Collobert, Sinz, Weston & Bottou
2006, section 1.4).
"""

import math

import numpy as np

from core.engine.requests import KernelRange, Phase, Report, Steps, Stopped
from core.kernels.cache import RowCache
from core.kernels.function import Kernel
from core.kernels.gram import Positions, Vector
from core.losses.balance import positive_fraction
from core.numerics.vectors import dot
from core.optimizers.cccp import CccpState, Pieces, kink_margin, maximise_to_pieces, run_cccp
from core.optimizers.smo import (
    DualSolution,
    DualTerms,
    Multipliers,
    check_model_size,
    empty_result,
    hinge,
    hinge_terms,
    kernel_spec,
    settled_C,
)
from core.options.kernel import CccpOptions
from core.problem import Expansion, Problem, Result, Status


class TransductiveLoss:
    """``½ |w|² + Σ_i C_i max(0, 1 − y_i f_i) + Σ_j C*_j [R_s(f_j) + R_s(−f_j)]`` under ``Σ_j weight_j f_j = target``
    (Eqns. 1.12 and 1.13).

    Points: the labeled rows, the unlabeled ones, and the mean of the unlabeled in the space of the kernel, whose
    multiplier is that of the constraint (Eqn. 1.15). Where C* is 0 there is no constraint. ``caps`` are C* of the
    unlabeled rows.
    """

    def __init__(self, problem: Problem, C: float, caps: Vector, s: float, fraction: float, margin: float) -> None:
        self._y, self._n = problem.y, problem.n_labeled
        self._caps, self._unlabeled, self._s, self._margin = C * problem.costs[: problem.n_labeled], caps, s, margin
        self.supervised = not caps.any()
        self._target = 2.0 * fraction - 1.0
        self._weights = problem.weights[problem.n_labeled :]

    def supervised_terms(self) -> DualTerms:
        """Terms of the SVM on the labeled points; the multipliers of all others stay 0."""
        still = np.zeros(len(self._unlabeled) + 1)
        return DualTerms(*(np.concatenate([own, still]) for own in hinge_terms(self._y, self._caps)))

    def pieces(self, scores: Vector) -> Pieces:
        """Of each unlabeled point: −1 where ``f < s − margin``, 1 where ``f > margin − s``, else 0."""
        scores, bound = scores[self._n : self._n + len(self._unlabeled)], self._margin - self._s
        return (scores > bound).astype(np.int8) - (scores < -bound).astype(np.int8)

    def kink_distance(self, scores: Vector) -> float:
        """The least distance of ``|f|`` of an unlabeled point from ``margin − s``."""
        scores = scores[self._n : self._n + len(self._unlabeled)]
        return float(np.abs(np.abs(scores) - (self._margin - self._s)).min(initial=np.inf))

    def terms(self, pieces: Pieces) -> DualTerms:
        """``−β ≤ y α ≤ C* − β`` for both copies of an unlabeled row (Algorithm 1.3): their sum is the point's α; no
        bounds for the mean.
        """
        middle = self._unlabeled * pieces
        unlabeled = (
            middle - self._unlabeled,
            middle,
            middle + self._unlabeled,
            np.ones_like(middle),
            -np.ones_like(middle),
        )
        mean = (-np.inf, np.inf, np.inf, self._target, self._target)
        own = hinge_terms(self._y, self._caps)
        return DualTerms(
            *(np.concatenate([*parts[:2], [parts[2]]]) for parts in zip(own, unlabeled, mean, strict=True))
        )

    def objective(self, solution: DualSolution) -> float:
        """Objective of Eqn. 1.12; where C* is 0, the objective of the SVM."""
        labeled, unlabeled = np.split(solution.scores[:-1], [self._n])
        ramps = np.minimum(1.0 - self._s, hinge(unlabeled)) + np.minimum(1.0 - self._s, hinge(-unlabeled))
        return 0.5 * solution.norm + dot(self._caps, hinge(self._y * labeled)) + dot(self._unlabeled, ramps)

    def intercept(self, multipliers: Multipliers, found: float) -> float:
        """The intercept with which the constraint holds exactly; it is within the tolerance of the one found."""
        return self._target - float(multipliers.kernel_sums[-1])

    def support(self, multipliers: Multipliers) -> Positions:
        """The support vectors; all unlabeled rows are if the mean has a multiplier."""
        return np.flatnonzero(self.weights(multipliers))

    def weights(self, multipliers: Multipliers) -> Vector:
        """Weights of the rows: the unlabeled ones share the mean's multiplier."""
        weights = multipliers.alpha[:-1].copy()
        weights[self._n :] += multipliers.alpha[-1] * self._weights
        return weights


def cccp_tsvm(problem: Problem, options: CccpOptions, init: Vector | None = None, /) -> Steps:
    """Transductive SVM that pushes unlabeled rows out of the margin, with a given mean of their scores.

    Objective: ``½ |w|² + Σ_i C_i max(0, 1 − y_i f_i) + Σ_j C*_j [R_s(f_j) + R_s(−f_j)]``, ``R_s(z) = min(1 − s, max(0,
    1 − z))`` (Eqn. 1.12 of Collobert et al. 2006); C_i = C · cost of row i, C*_j = C* · cost of row j, C* = ``C_u``, by
    default such that both kinds weigh the same in total (U C* = L C without costs); sums, not means. Constraint: the
    weighted mean of the unlabeled scores is 2 r − 1, r the positive fraction (Eqn. 1.13). Algorithm 1.3: rounds of
    convex solves, in which the concave part of the losses is replaced by its tangent at the last scores. The first
    scores are those of the SVM on the labeled rows, or ``init``, scores of all rows. Without unlabeled rows or with C*
    = 0 the result is the SVM. Stopping: the pieces on which the unlabeled rows lie repeat, or ``max_iterations``.
    """
    fraction = positive_fraction(problem, options)
    try:
        C = yield from settled_C(options, problem, options.cache_bytes)
    except Stopped:
        return empty_result(options, problem, Status.CANCELLED)
    loss = TransductiveLoss(
        problem, C, unlabeled_caps(problem, options, C), options.s, fraction, kink_margin(options.tolerance)
    )
    search = _Search(problem, options, loss)
    try:
        return (yield from search.run(init))
    except Stopped:
        return search.result(Status.CANCELLED)


def unlabeled_caps(problem: Problem, options: CccpOptions, C: float) -> Vector:
    """C* of each unlabeled row, shape (n_unlabeled,)."""
    labeled, unlabeled = problem.costs[: problem.n_labeled], problem.costs[problem.n_labeled :]
    weight = options.C_u
    if weight is None:
        weight = C * float(labeled.sum()) / float(unlabeled.sum()) if len(unlabeled) else 0.0
    return weight * unlabeled


class _Search:
    """The state of one run."""

    def __init__(self, problem: Problem, options: CccpOptions, loss: TransductiveLoss) -> None:
        self._problem, self._options, self._loss = problem, options, loss
        self._state = CccpState(loss, Multipliers.zero(problem.rows.n_rows + 1))
        self._kernel: Kernel | None = None

    def run(self, init: Vector | None) -> Steps:
        """The steps of ``cccp_tsvm``."""
        problem, options, state = self._problem, self._options, self._state
        n_rows = problem.rows.n_rows
        mean = np.concatenate([np.zeros(problem.n_labeled), problem.weights[problem.n_labeled :]])
        cache: RowCache = yield KernelRange(kernel_spec(options), 0, n_rows, mean, options.cache_bytes)
        self._kernel = cache.gram.kernel
        if not cache.gram.fits_float32:
            return empty_result(options, problem, Status.NUMERICAL_ERROR)
        if init is None or self._loss.supervised:
            report = Report(Phase("cccp_tsvm").then("svm"), 0, 0.0, np.nan, 0.0, share=0.1)
            terms, distance = self._loss.supervised_terms(), self._supervised_kink_distance
            found = yield from maximise_to_pieces(cache, terms, state.multipliers, options.tolerance, report, distance)
            init = state.multipliers.kernel_sums[:-1] + found.intercept
            if self._loss.supervised:
                yield from check_model_size(self._kernel, self._loss.support(state.multipliers))
                state.best = DualSolution(state.multipliers, found.intercept)
                state.objective = self._loss.objective(state.best)
                return self.result(found.status if math.isfinite(state.objective) else Status.NUMERICAL_ERROR)
        report = Report(Phase("cccp_tsvm"), 0, 0.0, np.nan, 0.1, share=0.9)
        status = yield from run_cccp(
            cache, state, self._loss.pieces(init), options.tolerance, options.max_iterations, report
        )
        return self.result(status)

    def _supervised_kink_distance(self, intercept: float) -> float:
        return (
            math.inf
            if self._loss.supervised
            else self._loss.kink_distance(self._state.multipliers.kernel_sums + intercept)
        )

    def result(self, status: Status) -> Result:
        """The result of the best solution so far."""
        best = self._state.best
        if best is None or self._kernel is None:
            return empty_result(self._options, self._problem, status)
        weights = self._loss.weights(best.multipliers)
        rows = np.flatnonzero(weights)
        expansion = Expansion(rows, weights[rows], best.intercept, self._kernel)
        return Result(expansion, best.scores[self._problem.n_labeled : -1], self._state.objective, status)
