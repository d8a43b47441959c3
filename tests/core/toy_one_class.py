"""A toy algorithm of one class, in a file of its own: documents score by their product with the mean of the labeled
ones.
"""

from typing import ClassVar

import numpy as np
from pydantic import Field

from core.engine.requests import Adjoint, Phase, Report, Scores, Steps, Stopped, Vector
from core.options.base import Options
from core.problem import Linear, Problem, Result, Status


class OneClassOptions(Options):
    """Options of the toy."""

    min_classes: ClassVar[int] = 1

    share: float = Field(default=0.5, gt=0, lt=1, description="Share of the labeled documents that score above 0.")


def one_class(problem: Problem, options: OneClassOptions, init: Vector | None = None, /) -> Steps:
    """The mean of the labeled rows, and the threshold that so many of them pass."""
    sums, scores = np.zeros(problem.rows.n_features + 1), np.zeros(problem.rows.n_rows)
    weights = problem.weights.copy()
    weights[problem.n_labeled :] = 0.0
    try:
        yield Adjoint(weights, sums)
        sums[-1] = 0.0
        yield Scores(sums, np.zeros_like(scores), scores)
        yield Report(Phase("one_class"), 0, 0.0, None, 1.0)
    except Stopped:
        return Result(Linear(sums[:-1], 0.0), scores[problem.n_labeled :], np.nan, Status.CANCELLED)
    threshold = float(np.quantile(scores[: problem.n_labeled], 1 - options.share))
    return Result(Linear(sums[:-1], -threshold), scores[problem.n_labeled :] - threshold, 0.0, Status.CONVERGED)
