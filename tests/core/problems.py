"""Small problems with known dense forms, for all tests of the mathematics."""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.engine.requests import Request
from core.engine.runner import Scheduler
from core.models.model import LinearModel
from core.options.base import BalancedOptions, Options
from core.problem import NO_RESULT, Linear, Problem, Result
from core.progress import Observer, Phase
from core.registry import ALGORITHMS, find_algorithm
from core.train import Training, load_solver

Array = NDArray[np.float64]

LINEAR = ("svm", "tsvm", "da")
"""the algorithms that minimise squared hinge losses over coefficients, weighed by lambda"""


class Small(NamedTuple):
    """A two-class problem with the labeled rows first."""

    rows: SparseRows
    X: Array
    """the same, dense, with a last column of ones"""
    y: Array
    truth: Array
    """the class of every row, -1 or +1"""

    @property
    def problem(self) -> Problem:
        return Problem.of(self.rows, self.y)

    @property
    def class_indices(self) -> NDArray[np.int32]:
        """The labels as training takes them: 0, 1 or -1 for unlabeled."""
        return np.concatenate([self.y > 0, np.full(self.rows.n_rows - len(self.y), -1)]).astype(np.int32)


def normal(rng: np.random.Generator, n: int) -> Array:
    """n normal numbers (typed, where NumPy's own stubs see a float)."""
    return rng.standard_normal((n,))


def rows_of(matrix: Any) -> SparseRows:
    """Rows of a dense or a sparse matrix as SparseRows; values are rounded to float32."""
    matrix = sp.csr_matrix(matrix, dtype=np.float32)
    matrix.sort_indices()
    return SparseRows(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.uint32),
        matrix.data.astype(np.float32),
        matrix.shape[1],
    )


def arcs() -> tuple[Array, NDArray[np.int64]]:
    """Two half circles, each in the other's mouth, of 60 rows each, and their classes."""
    rng, t = np.random.default_rng(0), np.linspace(0, np.pi, 60)
    dense = np.concatenate([np.column_stack([np.cos(t), np.sin(t)]), np.column_stack([1 - np.cos(t), 0.4 - np.sin(t)])])
    return dense + 0.03 * rng.standard_normal(dense.shape), np.repeat([0, 1], 60)


def dense_of(rows: SparseRows) -> Array:
    """Rows as a dense float64 array, element by element."""
    dense = np.zeros((rows.n_rows, rows.n_features))
    for i in range(rows.n_rows):
        for k in range(int(rows.indptr[i]), int(rows.indptr[i + 1])):
            dense[i, int(rows.indices[k])] += float(rows.values[k])
    return dense


def with_bias(dense: Array) -> Array:
    return np.column_stack([dense, np.ones(len(dense))])


def random_rows(rng: np.random.Generator, n: int, d: int, density: float = 0.3) -> SparseRows:
    """Random rows, some of them empty."""
    dense = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    dense[rng.random(n) < 0.1] = 0.0
    return rows_of(dense)


def small(seed: int, n: int = 40, d: int = 6, labeled: int = 8, gap: float = 0.8) -> Small:
    """Two clusters that overlap, some features missing; at least one label of each class."""
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < 0.45, 1.0, -1.0)
    truth[:2] = [1.0, -1.0]
    dense = (rng.standard_normal((n, d)) + gap * truth[:, None]) * (rng.random((n, d)) < 0.6)
    rows = rows_of(dense)
    return Small(rows, with_bias(dense_of(rows)), truth[:labeled].copy(), truth)


def weights_of(result: Result) -> Array:
    """Coefficients with the bias last."""
    assert isinstance(result.decision, Linear)
    return np.append(result.decision.coefficients, result.decision.intercept)


def answer_of(steps: Generator[object, None, Any]) -> tuple[Any, int]:
    """The answer of a generator that needs none, and how often it pauses."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, pauses
        pauses += 1


def as_steps(work: Generator[Request, Any, Any], answers: list[Any]) -> Generator[Request, Any, Result]:
    """Let a Scheduler run a part of a solver; its return value is appended to ``answers``."""
    answers.append((yield from work))
    return NO_RESULT


def linear(training: Training) -> LinearModel:
    """The model of a training by an algorithm of the linear family."""
    assert isinstance(training.model, LinearModel)
    return training.model


def labeled(name: str) -> dict[str, Any]:
    """Options by which an algorithm takes the shares of the labels for the class fractions, if it needs any, instead of
    estimating them.
    """
    return {"positive_fraction": "labeled"} if issubclass(ALGORITHMS[name].options, BalancedOptions) else {}


def solve(
    algorithm: str,
    problem: Problem,
    options: Options,
    *,
    init: Array | None = None,
    observer: Observer | None = None,
    threads: int | None = None,
) -> Result:
    """Run one solver on one two-class problem, as the options say; raises UnknownAlgorithm."""
    solver = load_solver(find_algorithm(algorithm))
    with Scheduler(problem.rows, threads=threads, observer=observer) as scheduler:
        return scheduler.run({Phase(): lambda: solver(problem, options, init)})[0]
