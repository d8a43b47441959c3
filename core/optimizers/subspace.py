"""Linear solvers in the space of a kernel, by coordinates of the documents."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from core.engine.requests import (
    Adjoint,
    CheckModelSize,
    KernelSpace,
    Procedure,
    Product,
    Request,
    Scores,
    Steps,
    Stopped,
    Subspace,
    Within,
    translated,
)
from core.optimizers.smo import empty_result, kernel_spec
from core.options.subspace import SubspaceOptions
from core.problem import Expansion, Linear, Problem, Status

T = TypeVar("T")
AnyOptions = TypeVar("AnyOptions", bound=SubspaceOptions)


def in_kernel_space(solver: Callable[[Problem, AnyOptions], Steps], problem: Problem, options: AnyOptions) -> Steps:
    """The steps of a linear solver over the rows, or over their coordinates in the space of the kernel, if it is not
    linear.

    Coordinates z have ``z · z' = k(x, x')``: so w and |w|² are those of the kernel's space (core.kernels.paths).
    The solver's passes read the coordinates; graphs that it requests are those of the rows. The result is an expansion
    over the pivots; the bias stays regularised, as a coordinate of value 1.
    """
    if options.kernel == "linear":
        return (yield from solver(problem, options))
    try:
        subspace: Subspace | None = yield KernelSpace(kernel_spec(options), options.most_columns)
        if subspace is None:
            return empty_result(options, problem, Status.NUMERICAL_ERROR)
        yield CheckModelSize(np.sort(subspace.coordinates.pivots))
    except Stopped:
        return empty_result(options, problem, Status.CANCELLED)
    coordinates = subspace.coordinates
    result = yield from within(solver(replace(problem, rows=coordinates.rows), options), subspace)
    assert isinstance(result.decision, Linear)
    weights, order = (
        coordinates.expansion_weights(result.decision.coefficients),
        np.argsort(coordinates.pivots, kind="stable"),
    )
    decision = Expansion(coordinates.pivots[order], weights[order], result.decision.intercept, subspace.kernel)
    return replace(result, decision=decision)


def within(steps: Procedure[T], subspace: Subspace) -> Procedure[T]:
    """Steps over the coordinates of a subspace; their graphs and kernels belong to the rows."""

    def translate(request: Request) -> Procedure[Any]:
        return (yield Within(subspace, request) if isinstance(request, Product | Scores | Adjoint) else request)

    return translated(steps, translate)
