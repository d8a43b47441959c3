"""Shared by the solvers of the kernel family: the dual terms of labeled documents, and the way from multipliers to a
Result.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from core.engine.kernel_requests import CheckModelSize, KernelRange, KernelScores, KernelSpec, KernelSums
from core.engine.runner import Request
from core.kernels.cache import RowCache
from core.kernels.function import Kernel
from core.kernels.gram import Positions, Vector
from core.numerics.vectors import dot
from core.optimizers.smo import DualTerms, Multipliers
from core.options.kernel import KernelChoice, KernelFunction
from core.problem.problem import Problem
from core.problem.result import Expansion, Result, Status

DEFAULT_MARGIN = 100.0
"""C in units of 1 / the variance of the labeled documents in the space of the kernel, where labels are too few to
choose it by"""
_LEAST_VARIANCE = 1e-6
"""share of mean k(x, x) below which the variance is rounding error"""
_SAMPLE = 1_000


class DualSolution(NamedTuple):
    """Multipliers and the intercept that goes with them."""

    multipliers: Multipliers
    intercept: float

    @property
    def scores(self) -> Vector:
        """Scores of all points, shape (n_points,)."""
        return self.multipliers.kernel_sums + self.intercept

    @property
    def norm(self) -> float:
        """|w|², w being the direction in the space of the kernel."""
        return dot(self.multipliers.alpha, self.multipliers.kernel_sums)


def kernel_spec(options: KernelFunction) -> KernelSpec:
    """The kernel that the options name."""
    return KernelSpec(options.kernel, options.gamma, options.degree, options.coef0)


def feature_variance(cache: RowCache, n_labeled: int) -> Generator[Request, Any, float]:
    """The variance of the first ``n_labeled`` points in the space of the kernel: mean k(x, x) less mean k(x, z); of
    many, of some evenly spaced ones.

    1 / variance is what C is to be compared with: with it, a document that is like no other just reaches its margin.
    """
    chosen = np.unique(np.linspace(0, n_labeled - 1, min(n_labeled, _SAMPLE)).round().astype(np.int64))
    sums: Vector = yield KernelSums(cache, chosen, np.full(len(chosen), 1.0 / len(chosen)))
    mean = float(cache.gram.diagonal[chosen].sum()) / len(chosen)
    variance = mean - float(sums[chosen].sum()) / len(chosen)
    return max(variance, _LEAST_VARIANCE * mean) or 1.0


def settled_C(options: KernelChoice, problem: Problem, most_bytes: int) -> Generator[Request, Any, float]:
    """C as a number: given, chosen by core.validation.kernel_tuning, or else a value that suits the scale of the kernel
    values.

    ``most_bytes`` of kernel rows of the labeled documents may be kept for that.
    """
    if options.C != "auto":
        return options.C
    cache: RowCache = yield KernelRange(kernel_spec(options), 0, problem.n_labeled, None, most_bytes)
    if not cache.gram.fits_float32:
        return 1.0
    return options.weight_unit * DEFAULT_MARGIN / (yield from feature_variance(cache, problem.n_labeled))


def hinge_terms(y: Vector, caps: Vector) -> DualTerms:
    """Terms of documents with the loss ``caps · max(0, 1 − y f)``:
    ``0 ≤ y α ≤ caps`` (Eqn. 1.9 of Collobert et al. 2006 with β = 0).
    """
    upper = np.maximum(0.0, y * caps)
    return DualTerms(np.minimum(0.0, y * caps), upper, upper.copy(), y.copy(), y.copy())


def hinge(margins: Vector) -> Vector:
    """``max(0, 1 − z)``."""
    return np.maximum(0.0, 1.0 - margins)


def expansion_of(solution: DualSolution, kernel: Kernel) -> Expansion:
    """The expansion of a solution over rows of the problem."""
    rows = np.flatnonzero(solution.multipliers.alpha)
    return Expansion(rows, solution.multipliers.alpha[rows], solution.intercept, kernel)


def check_model_size(kernel: Kernel, support: Positions) -> Generator[Request, Any, None]:
    """Report the support rows of a model, which a model in the linear kernel does not store; raises ModelTooLarge."""
    if kernel.name != "linear":
        yield CheckModelSize(support)


def empty_result(options: KernelFunction, problem: Problem, status: Status) -> Result:
    """The result of a solver that ends before it has a solution: an expansion of no row, with scores of NaN."""
    expansion = Expansion(np.zeros(0, np.int64), np.zeros(0), 0.0, Kernel(options.kernel))
    return Result(expansion, np.full(problem.n_unlabeled, np.nan), np.nan, status)


def score_unlabeled(
    problem: Problem, expansion: Expansion, status: Status
) -> Generator[Request, Any, tuple[Vector, Status]]:
    """Scores of the unlabeled rows by an expansion over labeled ones, shape (n_unlabeled,), and the status of the
    solution with these scores.

    The status is NUMERICAL_ERROR if a score leaves the range of float64.
    """
    unlabeled: Positions = np.arange(problem.n_labeled, problem.rows.n_rows)
    if not len(unlabeled) or not len(expansion.rows):
        return np.full(len(unlabeled), expansion.intercept), status
    scores: Vector = yield KernelScores(expansion.kernel, expansion.rows, expansion.weights, unlabeled)
    return scores + expansion.intercept, status if np.isfinite(scores).all() else Status.NUMERICAL_ERROR
