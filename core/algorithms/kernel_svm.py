"""The SVM with hinge loss in the space of a kernel (Collobert, Sinz, Weston & Bottou 2006, section 1.2)."""

import math

import numpy as np

from core.engine.requests import KernelRange, Phase, Report, Steps, Stopped, Vector
from core.kernels.cache import RowCache
from core.numerics.vectors import dot
from core.optimizers.smo import (
    DualSolution,
    Multipliers,
    check_model_size,
    empty_result,
    expansion_of,
    hinge,
    hinge_terms,
    kernel_spec,
    maximise,
    score_unlabeled,
    settled_C,
)
from core.options.kernel import KernelOptions
from core.problem import Expansion, Problem, Result, Status


def kernel_svm(problem: Problem, options: KernelOptions, init: Vector | None = None, /) -> Steps:
    """Support vector machine on the labeled rows; the unlabeled ones are only scored (NaN if stopped before).

    Objective: ``½ |w|² + Σ_i C_i max(0, 1 − y_i f_i)``, f = w·φ(x) + b, C_i = C · cost of row i: a sum, as usual for
    this family (Eqn. 1.4 of Collobert et al. 2006). Solved in its dual by sequential minimal optimisation. The problem
    is convex, so ``init`` would change nothing. Stopping: core.optimizers.smo, with ``tolerance``.
    """
    multipliers = Multipliers.zero(problem.n_labeled)
    result = empty_result(options, problem, Status.CANCELLED)
    try:
        cache: RowCache = yield KernelRange(kernel_spec(options), 0, problem.n_labeled, None, options.cache_bytes)
        if not cache.gram.fits_float32:
            return empty_result(options, problem, Status.NUMERICAL_ERROR)
        caps = (yield from settled_C(options, problem, options.cache_bytes)) * problem.costs[: problem.n_labeled]
        report = Report(Phase("kernel_svm"), 0, 0.0, None, 0.0, share=0.9)
        found = yield from maximise(cache, hinge_terms(problem.y, caps), multipliers, options.tolerance, report)
        solution = DualSolution(multipliers, found.intercept)
        expansion = expansion_of(solution, cache.gram.kernel)
        result = _result(problem, caps, solution, expansion, np.full(problem.n_unlabeled, np.nan), Status.CANCELLED)
        yield from check_model_size(expansion.kernel, expansion.rows)
        unlabeled, status = yield from score_unlabeled(problem, expansion, found.status)
    except Stopped:
        return result
    return _result(problem, caps, solution, expansion, unlabeled, status)


def _result(
    problem: Problem, caps: Vector, solution: DualSolution, expansion: Expansion, unlabeled: Vector, status: Status
) -> Result:
    objective = 0.5 * solution.norm + dot(caps, hinge(problem.y * solution.scores))
    return Result(expansion, unlabeled, objective, status if math.isfinite(objective) else Status.NUMERICAL_ERROR)
