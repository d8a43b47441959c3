"""The one signature of all solvers."""

from typing import Protocol

from core.options import Options
from core.problem import Problem
from core.progress import Observer
from core.registry import algorithm as find_algorithm
from core.result import Result
from core.sweeps import Steps, Sweeper, Vector


class Solver(Protocol):
    """Steps towards a Result, to be run by a Sweeper over ``problem.rows``.

    ``init`` is what the registry says that the algorithm starts from: coefficients, shape (n_features + 1,), the bias last, or scores of all rows,
    shape (n_rows,).
    """

    def __call__(self, problem: Problem, options: Options, init: Vector | None = None, /) -> Steps:
        """The steps, not yet begun."""
        ...


def solve(
    algorithm: str, problem: Problem, options: Options, *, init: Vector | None = None, observer: Observer | None = None, threads: int | None = None
) -> Result:
    """Run one solver on one two-class problem, as the options say; raises UnknownAlgorithm."""
    solver = find_algorithm(algorithm).load()
    with Sweeper(problem.rows, threads=threads, observer=observer) as sweeper:
        return sweeper.run({"": lambda: solver(problem, options, init)})[0]
