"""The SVM with ramp loss, by the concave-convex procedure (Collobert, Sinz, Weston & Bottou 2006, section 1.3).

Documents far on the wrong side of the margin are given up: they are no support vectors.
"""

import numpy as np

from core.engine.requests import KernelRange, KernelSubset, KernelSums, Phase, Procedure, Report, Steps, Stopped
from core.kernels.cache import RowCache
from core.kernels.gram import Positions, Vector
from core.numerics.vectors import dot
from core.numerics.width import WIDTH
from core.optimizers.cccp import SURE, CccpState, Pieces, kink_margin, run_cccp, tolerances
from core.optimizers.smo import (
    DualSolution,
    DualTerms,
    Multipliers,
    empty_result,
    expansion_of,
    hinge,
    hinge_terms,
    kernel_spec,
    maximise,
    score_unlabeled,
    settled_C,
)
from core.options.kernel import RampOptions
from core.problem import Problem, Result, Status
from core.validation.folds import evenly_spaced


class RampLoss:
    """``½ |w|² + Σ_i C_i min(1 − s, max(0, 1 − y_i f_i))`` (Eqn. 1.8): the hinge at 1 minus the hinge at s."""

    def __init__(self, y: Vector, caps: Vector, s: float, margin: float) -> None:
        self._y, self._caps, self._s, self._margin = y, caps, s, margin

    def pieces(self, scores: Vector) -> Pieces:
        """1 where ``y f < s − margin``: there β = C."""
        return (self._y * scores < self._s - self._margin).astype(np.int8)

    def kink_distance(self, scores: Vector) -> float:
        """The least distance of ``y f`` from ``s − margin``."""
        return float(np.abs(self._y * scores - (self._s - self._margin)).min(initial=np.inf))

    def terms(self, pieces: Pieces) -> DualTerms:
        """``−β ≤ y α ≤ C − β`` (Eqn. 1.9)."""
        terms = hinge_terms(self._y, self._caps)
        shift = self._y * self._caps * pieces
        return terms._replace(lower=terms.lower - shift, knot=terms.knot - shift, upper=terms.upper - shift)

    def objective(self, solution: DualSolution) -> float:
        """Objective of Eqn. 1.8."""
        losses = np.minimum(1.0 - self._s, hinge(self._y * solution.scores))
        return 0.5 * solution.norm + dot(self._caps, losses)

    def intercept(self, multipliers: Multipliers, found: float) -> float:
        """The intercept that the convex solve found."""
        return found

    def support(self, multipliers: Multipliers) -> Positions:
        """The support vectors."""
        return np.flatnonzero(multipliers.alpha)


def ramp_svm(problem: Problem, options: RampOptions, init: Vector | None = None, /) -> Steps:
    """Ramp-loss SVM on the labeled rows; the unlabeled ones are only scored (NaN if stopped before).

    Objective: ``½ |w|² + Σ_i C_i R_s(y_i f_i)`` with ``R_s(z) = min(1 − s, max(0, 1 − z))``, C_i = C · cost of row i
    (Eqn. 1.8 of Collobert et al. 2006); not convex. Algorithm 1.2: rounds of convex solves, in which documents that
    scored below s have a loss that is linear in their score. Start: with ``zero`` the first round gives up no document,
    so it is the hinge-loss SVM. With ``subset`` a hinge-loss SVM on a share of the labeled rows, evenly spaced within
    each class, says which documents to give up first (section 1.3.5); its multipliers are the first ones. ``init``,
    scores of all rows, takes the place of either. Stopping: a round gives up the same documents as the one before, or
    ``max_iterations``.
    """
    result = empty_result(options, problem, Status.CANCELLED)
    try:
        cache: RowCache = yield KernelRange(kernel_spec(options), 0, problem.n_labeled, None, options.cache_bytes)
        if not cache.gram.fits_float32:
            return empty_result(options, problem, Status.NUMERICAL_ERROR)
        caps = (yield from settled_C(options, problem, options.cache_bytes)) * problem.costs[: problem.n_labeled]
        loss = RampLoss(problem.y, caps, options.s, kink_margin(options.tolerance))
        state = CccpState(loss, Multipliers.zero(problem.n_labeled))
        report = Report(Phase("ramp_svm"), 0, 0.0, np.nan, 0.0, share=0.95)
        pieces: Pieces = np.zeros(problem.n_labeled, np.int8)
        if init is not None:
            pieces = loss.pieces(init[: problem.n_labeled])
        elif options.start == "subset":
            pieces = yield from _start_on_subset(cache, problem, caps, loss, state, options)
        # the first round of a start at zero has the support vectors of the hinge loss, of which later rounds lose some
        final_from = 0 if pieces.any() else 1
        try:
            status = yield from run_cccp(
                cache, state, pieces, options.tolerance, options.max_iterations, report, final_from=final_from
            )
        finally:
            if state.best is not None:
                expansion = expansion_of(state.best, cache.gram.kernel)
                result = Result(expansion, np.full(problem.n_unlabeled, np.nan), state.objective, Status.CANCELLED)
        if state.best is None:
            return empty_result(options, problem, Status.NUMERICAL_ERROR)
        unlabeled, status = yield from score_unlabeled(problem, expansion, status)
    except Stopped:
        return result
    return Result(expansion, unlabeled, state.objective, status)


def _start_on_subset(
    cache: RowCache, problem: Problem, caps: Vector, loss: RampLoss, state: CccpState, options: RampOptions
) -> Procedure[Pieces]:
    """Solve the hinge-loss SVM on a share of the rows, into ``state.multipliers``; returns the pieces that its scores
    put all rows on.
    """
    chosen = evenly_spaced(problem.y, lambda count: max(1, round(options.subset_fraction * count)))
    # solvers side by side have a cache each
    part: RowCache = yield KernelSubset(cache.gram.kernel, chosen, options.cache_bytes // WIDTH)
    multipliers = Multipliers.zero(len(chosen))
    report = Report(Phase("ramp_svm").then("subset"), 0, 0.0, np.nan, 0.0)
    for tolerance in tolerances(cache.gram, options.tolerance):
        found = yield from maximise(part, hinge_terms(problem.y[chosen], caps[chosen]), multipliers, tolerance, report)
        state.multipliers.alpha[chosen] = multipliers.alpha
        support = np.flatnonzero(state.multipliers.alpha)
        state.multipliers.kernel_sums = yield KernelSums(cache, support, state.multipliers.alpha[support])
        scores = state.multipliers.kernel_sums + found.intercept
        if loss.kink_distance(scores) > SURE * tolerance:
            break
    return loss.pieces(scores)
