"""What the solvers of the kernel family share: the terms of labeled documents, and the way from multipliers to a Result."""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from core.engine.kernel_requests import CheckModelSize, KernelSpec, KernelSubset, KernelSums
from core.engine.runner import Request
from core.kernels.cache import RowCache
from core.kernels.function import Kernel
from core.kernels.gram import Positions, Vector
from core.optimizers.smo import DualTerms, Multipliers
from core.options.kernel import KernelChoice
from core.problem.problem import Problem
from core.problem.result import Expansion, Result, Status


class DualSolution(NamedTuple):
    """Multipliers and the intercept that goes with them."""

    multipliers: Multipliers
    intercept: float

    @property
    def scores(self) -> Vector:
        """shape (n_points,)."""
        return self.multipliers.kernel_sums + self.intercept

    @property
    def norm(self) -> float:
        """|w|², w being the direction in the space of the kernel."""
        return float(self.multipliers.alpha @ self.multipliers.kernel_sums)


def kernel_spec(options: KernelChoice) -> KernelSpec:
    """The kernel that the options name."""
    return KernelSpec(options.kernel, options.gamma, options.degree, options.coef0)


def hinge_terms(y: Vector, caps: Vector) -> DualTerms:
    """Of documents with the loss ``caps · max(0, 1 − y f)``: ``0 ≤ y α ≤ caps`` (Eqn. 1.9 of Collobert et al. with β = 0)."""
    upper = np.maximum(0.0, y * caps)
    return DualTerms(np.minimum(0.0, y * caps), upper, upper.copy(), y.copy(), y.copy())


def hinge(margins: Vector) -> Vector:
    """``max(0, 1 − z)``."""
    return np.maximum(0.0, 1.0 - margins)


def expansion_of(solution: DualSolution, kernel: Kernel) -> Expansion:
    """The expansion over points that are rows of the problem."""
    rows = np.flatnonzero(solution.multipliers.alpha)
    return Expansion(rows, solution.multipliers.alpha[rows], solution.intercept, kernel)


def check_model_size(kernel: Kernel, rows: Positions) -> Generator[Request, Any, None]:
    """Tell which rows a model would keep; in the linear kernel it keeps none."""
    if kernel.name != "linear":
        yield CheckModelSize(rows)


def empty_result(options: KernelChoice, problem: Problem, status: Status) -> Result:
    """What there is when a solver ends before it has begun: an expansion of no row."""
    expansion = Expansion(np.zeros(0, np.int64), np.zeros(0), 0.0, Kernel(options.kernel))
    return Result(expansion, np.full(problem.n_unlabeled, np.nan), np.nan, status)


def score_unlabeled(problem: Problem, expansion: Expansion, status: Status) -> Generator[Request, Any, tuple[Vector, Status]]:
    """Scores of the unlabeled rows by an expansion over labeled ones, shape (n_unlabeled,), and the status of a solution with such scores.

    Where float32 cannot hold the kernel values they are NaN, and that is a numerical error.
    """
    unlabeled: Positions = np.arange(problem.n_labeled, problem.rows.n_rows)
    if not len(unlabeled) or not len(expansion.rows):
        return np.full(len(unlabeled), expansion.intercept), status
    cache: RowCache = yield KernelSubset(expansion.kernel, np.concatenate([expansion.rows, unlabeled]), 0)
    if not cache.gram.fits_float32:
        return np.full(len(unlabeled), np.nan), Status.NUMERICAL_ERROR
    sums = yield KernelSums(cache, np.arange(len(expansion.rows)), expansion.weights)
    return np.asarray(sums[len(expansion.rows) :] + expansion.intercept), status
