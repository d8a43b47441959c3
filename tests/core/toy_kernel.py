"""A toy kernel algorithm, in a file of its own.

Parzen's classifier, the difference of the mean kernel values with either class.
"""

from pydantic import Field

from core.engine.requests import KernelRange, KernelSums, Phase, Report, Steps, Stopped, Vector
from core.kernels.cache import RowCache
from core.optimizers.smo import check_model_size, empty_result, kernel_spec, score_unlabeled
from core.options.kernel import KernelOptions
from core.problem import Expansion, Problem, Result, Status


class KernelMeanOptions(KernelOptions):
    """Options of the toy, beside the options of all kernel methods."""

    rate: float = Field(default=1.0, gt=0, description="Weight of each labeled document.")


def kernel_mean(problem: Problem, options: KernelMeanOptions, init: Vector | None = None, /) -> Steps:
    """The difference of the mean kernel values with the labeled documents of either class, by their costs."""
    result = empty_result(options, problem, Status.CANCELLED)
    try:
        cache: RowCache = yield KernelRange(kernel_spec(options), 0, problem.n_labeled, None, options.cache_bytes)
        if not cache.gram.fits_float32:
            return empty_result(options, problem, Status.NUMERICAL_ERROR)
        weights = options.rate * problem.y * problem.weights[: problem.n_labeled]
        rows = weights.nonzero()[0]
        sums: Vector = yield KernelSums(cache, rows, weights[rows])
        yield Report(Phase("kernel_mean"), 0, 0.0, None, 0.5)
        expansion = Expansion(rows, weights[rows], 0.0, cache.gram.kernel)
        yield from check_model_size(expansion.kernel, rows)
        unlabeled, status = yield from score_unlabeled(problem, expansion, Status.CONVERGED)
    except Stopped:
        return result
    return Result(expansion, unlabeled, float(abs(sums).max()), status)
