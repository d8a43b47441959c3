"""The one signature of all solvers."""

from collections.abc import Callable
from importlib import import_module
from typing import cast

from core.engine.requests import Steps, Vector
from core.engine.runner import Scheduler
from core.options.base import Options
from core.problem import Problem, Result
from core.progress import Observer, Phase
from core.registry import Algorithm, find_algorithm

Solver = Callable[[Problem, Options, Vector | None], Steps]
"""Steps towards a Result, not yet begun, to be run by a Scheduler over the rows of the problem.

The vector is what the registry says that the algorithm starts from: coefficients, shape (n_features + 1,), the bias
last, or scores of all rows, shape (n_rows,)."""


def load_solver(algorithm: Algorithm, n_problems: int = 1) -> Solver:
    """The solver of an algorithm for so many two-class problems over the same rows, imported at first use.

    Of an algorithm that solves them together each call has the steps of the next problem.
    """
    module, _, function = algorithm.solver.partition(":")
    found = getattr(import_module(module), function)
    return cast(Solver, found(n_problems) if algorithm.joint else found)


def solve(
    algorithm: str,
    problem: Problem,
    options: Options,
    *,
    init: Vector | None = None,
    observer: Observer | None = None,
    threads: int | None = None,
) -> Result:
    """Run one solver on one two-class problem, as the options say; raises UnknownAlgorithm."""
    solver = load_solver(find_algorithm(algorithm))
    with Scheduler(problem.rows, threads=threads, observer=observer) as scheduler:
        return scheduler.run({Phase(): lambda: solver(problem, options, init)})[0]
