"""Ridge regression of all labels at once, over the terms of documents and the directions that all documents share.

Few labels name few terms. Documents without labels say which terms go together: the directions in which all documents
vary most, as of latent semantic analysis (Deerwester et al., 1990). A kernel of both, ``x·x' + a · Vx·Vx'``, is linear
in the terms, so the model is one of terms like any other. All labels share the kernel and so one factorisation, which
also gives the scores of each labeled document without its label (Allen's PRESS, 1974).

A label's name says something before any document does. Where its words are terms, they are what its weights are drawn
towards in place of zeros: the mean of their prior. So labels need no documents that say the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows, SparseRows
from core.engine.requests import Adjoint, Product, Report, Scores, Steps, Vector
from core.engine.runner import Scheduler
from core.kernels.products import inverted, multiply_rows
from core.numerics.small_dense import Matrix, combined, factor_rows, invert_rows, row_products
from core.options.auto import MOST_LABELED, MOST_ROWS, N_DIRECTIONS
from core.problem import NO_RESULT, Linear, Problem, Result, Status, ensure_complete
from core.progress import Checkpoint, Phase, Span
from core.several.members import LabelSolutions, Spread
from core.several.sigmoids import fit_labels
from core.several.task import SeveralTask

RIDGE = 0.1
"""weight of |w|² beside the squared errors of the labels, of rows of a mean square length of 1"""
EMPHASES = (0.0, 1.0, 4.0, 16.0)
"""weights of the shared directions beside the terms that are tried"""
NAMES = (0.5, 2.0, 4.0)
"""weights that are tried beside 0 of the terms of a label's name, of length 1 together, that its weights are drawn
towards"""
_SLICE = 1 << 25
"""multiplications between two checkpoints"""
_DEPENDENT = 1e-12
"""share of the largest square length from which a direction is new beside those before it"""


class Directions(NamedTuple):
    """An orthonormal basis of nearly the directions in which documents vary most."""

    rows: NDArray[np.int64]
    """shape (n_read,): the rows that they are sums of, the labeled ones first"""
    weights: Matrix
    """shape (n_directions, n_read): of these rows in each direction"""
    coordinates: Matrix
    """shape (n_directions, n_labeled): of the labeled rows"""


@dataclass
class _Direction:
    """A step of subspace iteration from random signs (Halko, Martinsson & Tropp, 2011, algorithm 4.3)."""

    rows: NDArray[np.int64]
    """shape (n_read,): the rows that are read"""
    seed: tuple[int, int]
    weights: Vector = field(init=False)
    """shape (n_read,): of these rows in the direction"""
    products: Vector = field(init=False)
    """shape (n_read,): of these rows with the direction"""

    def steps(self, problem: Problem) -> Steps:
        shape, rows = problem.rows.n_rows, self.rows
        signs, read, scores = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        signs[rows] = np.random.default_rng(self.seed).integers(0, 2, len(rows)) * 2.0 - 1.0
        read[rows] = 1.0
        vector = np.zeros(problem.rows.n_features + 1)
        yield Adjoint(signs, vector)
        vector[-1] = 0.0  # the bias is no term
        vector = yield Product(vector, read, scores)
        self.weights = scores[rows]
        vector[-1] = 0.0
        yield Scores(vector, 1.0 - read, scores)
        self.products = scores[rows]
        return NO_RESULT


def find_directions(problem: Problem, scheduler: Scheduler, span: Span, checkpoint: Checkpoint) -> Directions | None:
    """The directions that rows share; None of too few rows or features. Raises Stopped.

    Those that depend on others, to the precision of numbers, are zeros.
    """
    n_rows, n_labeled = problem.rows.n_rows, problem.n_labeled
    others = np.linspace(n_labeled, n_rows - 1, min(problem.n_unlabeled, MOST_ROWS)).round().astype(np.int64)
    rows = np.concatenate([np.arange(n_labeled), others])
    count = min(N_DIRECTIONS, len(rows) // 4, problem.rows.n_features // 4)
    if not count:
        return None
    found = [_Direction(rows, (problem.seed, place)) for place in range(count)]
    steps: dict[Phase, Callable[[], Steps]] = {
        Phase("directions").then("direction", place): partial(each.steps, problem) for place, each in enumerate(found)
    }
    ensure_complete(scheduler.run(steps, span))
    weights, products = np.array([each.weights for each in found]), np.array([each.products for each in found])
    squares = row_products(weights, products)
    inverse = _inverse_factor(squares, checkpoint, _DEPENDENT * float(squares.diagonal().max()))
    labeled = np.ascontiguousarray(products[:, :n_labeled])
    combine = [np.array([combined(own, each) for own in inverse]) for each in (weights, labeled)]
    return Directions(rows, *combine)


def _inverse_factor(matrix: Matrix, checkpoint: Checkpoint, least: float = 0.0) -> Matrix:
    """The inverse of the lower Cholesky factor of a matrix, which becomes this factor."""
    inverse = np.zeros_like(matrix)
    height = max(1, _SLICE // matrix.size)
    for start in range(0, len(matrix), height):
        stop = min(start + height, len(matrix))
        factor_rows(matrix, start, stop, least)
        invert_rows(matrix, start, stop, inverse)
        checkpoint()
    return inverse


def _groups(known: NDArray[np.int8]) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Labels that are known of the same rows: these rows, and the columns of the labels."""
    masks, owners = np.unique(known != 0, axis=1, return_inverse=True)
    for place in range(masks.shape[1]):
        yield np.flatnonzero(masks[:, place]), np.flatnonzero(owners.ravel() == place)


def is_solvable(task: SeveralTask, rows: SparseRows) -> bool:
    """Whether rows are sparse and few enough have labels: a factorisation takes their cube."""
    work = sum(float(len(own)) ** 3 for own, _ in _groups(task.known))
    return not isinstance(rows, FullRows) and work <= MOST_LABELED**3


class _Fit(NamedTuple):
    """The solutions of all labels beside one kernel."""

    emphasis: float
    size: float
    """mean square length of the labeled rows"""
    names: float
    """weight of the terms of names"""
    weights: Matrix
    """shape (n_labels, n_labeled): of the labeled rows"""
    held_out: Matrix
    """shape (n_labeled, n_labels): scores of rows without their labels, NaN where these are not known"""
    objective: Vector
    """shape (n_labels,)"""

    def likelihood(self, known: NDArray[np.int8], least: int, checkpoint: Checkpoint) -> float:
        """The log-likelihood of labels left out, of the labels that at least so many rows have."""
        spread = Spread.joined(Spread.of(own[np.isfinite(own)]) for own in self.held_out.T)
        standardised, nothing = spread.standardised(self.held_out), np.zeros((0, known.shape[1]))
        return fit_labels(standardised, known, nothing, checkpoint, least=least).log_likelihood


def _fit(
    task: SeveralTask,
    products: Matrix,
    directions: Directions | None,
    emphasis: float,
    names: float,
    checkpoint: Checkpoint,
) -> _Fit:
    """``products`` of shape (n_labeled, n_labeled + n_labels) are those of the labeled rows with each other and with
    the names of labels.
    """
    kernel, expected = products[:, : len(products)].copy(), names * products[:, len(products) :]
    if directions is not None and emphasis:
        coordinates = np.ascontiguousarray(directions.coordinates.T)
        kernel += emphasis * row_products(coordinates, coordinates)
    size = max(float(kernel.diagonal().mean()), float(np.finfo(np.float64).tiny))
    kernel = kernel / size + 1.0  # the bias has the weight of a term that all rows have
    costs, applies = task.weights / task.weights.mean(), task.known > 0
    weights, held_out = np.zeros(task.known.T.shape), np.full(task.known.shape, np.nan)
    objective = np.zeros(len(weights))
    for rows, columns in _groups(task.known):
        matrix = kernel[np.ix_(rows, rows)]
        matrix[np.diag_indices_from(matrix)] += RIDGE / costs[rows]
        inverse = _inverse_factor(matrix, checkpoint)
        targets = np.ascontiguousarray(applies[np.ix_(rows, columns)].T, np.float64)
        residual = np.ascontiguousarray(targets - expected[np.ix_(rows, columns)].T)
        found = row_products(row_products(residual, inverse), np.ascontiguousarray(inverse.T))
        objective[columns] = RIDGE * (found * residual).sum(axis=1)
        weights[np.ix_(columns, rows)] = found
        held_out[np.ix_(rows, columns)] = (targets - found / (inverse * inverse).sum(axis=0)).T
    return _Fit(emphasis, size, names, weights, held_out, objective)


def _products(rows: SparseRows, names: SparseRows, checkpoint: Checkpoint) -> Matrix:
    """Products of rows with all of them, and then with names, shape (n_rows, n_rows + n_names)."""
    both = rows.followed_by(names)
    columns = inverted(both, np.bincount(both.indices, minlength=both.n_features), checkpoint)
    found = np.zeros((rows.n_rows, both.n_rows), np.float32)
    multiply_rows(*both.csr, *columns, np.arange(rows.n_rows), both.n_rows, found)
    return found.astype(np.float64)


def solve_ridge(
    task: SeveralTask,
    scheduler: Scheduler,
    problem: Problem,
    directions: Directions | None,
    names: SparseRows,
    span: Span,
    checkpoint: Checkpoint,
) -> tuple[LabelSolutions, dict[str, float]]:
    """Ridge regression of all labels with the emphasis of the directions by which labels left out are likeliest, then
    with the weight of names; these two; raises Stopped.

    A label of one row says how well names find it, and nothing of directions: without this row only its name is left.

    ``names`` has a row a label, of the terms of its name. Objective of a label: ``0.1 |w − v|² + Σ_i c_i (y_i −
    w·x_i)²`` with y of 0 and 1, costs c of mean 1, and v the terms of its name by their weight.
    """
    products = _products(problem.rows.between(0, problem.n_labeled), names, checkpoint)

    emphases = EMPHASES if directions is not None else (0.0,)
    fits = (_fit(task, products, directions, each, 0.0, checkpoint) for each in emphases)
    best = max(fits, key=lambda fit: fit.likelihood(task.known, 2, checkpoint))
    if names.n_nonzeros:
        named = (_fit(task, products, directions, best.emphasis, each, checkpoint) for each in NAMES)
        best = max(chain([best], named), key=lambda fit: fit.likelihood(task.known, 1, checkpoint))
    runs = [_Label(best, names.between(column, column + 1), column, directions) for column in range(names.n_rows)]
    steps: dict[Phase, Callable[[], Steps]] = {
        Phase(label=label): partial(run.steps, task, problem) for label, run in zip(task.classes, runs, strict=True)
    }
    results = scheduler.run(steps, span)
    ensure_complete(results)
    spread = Spread.joined(run.spread for run in runs)
    applies = task.known > 0
    held_out = np.where(applies & (applies.sum(axis=0) == 1), np.nan, best.held_out)
    return LabelSolutions.of(results, spread, spread.standardised(held_out)), {
        "emphasis": best.emphasis,
        "names": best.names,
    }


@dataclass
class _Label:
    """The model of one label, and the spread of its scores."""

    fit: _Fit
    name: SparseRows
    """the row of its name"""
    column: int
    directions: Directions | None
    spread: Spread = field(init=False)

    def steps(self, task: SeveralTask, problem: Problem) -> Steps:
        own, n_labeled = self.fit.weights[self.column], problem.n_labeled
        weights, vector = np.zeros(problem.rows.n_rows), np.zeros(problem.rows.n_features + 1)
        weights[:n_labeled] = own
        if self.directions is not None and self.fit.emphasis:
            along = row_products(own[None], self.directions.coordinates)[0]
            weights[self.directions.rows] += self.fit.emphasis * combined(along, self.directions.weights)
        yield Adjoint(weights, vector)
        vector /= self.fit.size
        name = self.name.trimmed
        vector[name.indices] += self.fit.names * name.values
        vector[-1] = float(own.sum())
        scores = np.zeros(problem.rows.n_rows)
        yield Scores(vector, np.zeros(len(scores)), scores)
        self.spread = Spread.of(scores[n_labeled:] if problem.n_unlabeled else scores)
        objective = float(self.fit.objective[self.column])
        yield Report(Phase("ridge"), 0, objective, objective, 1.0)
        return Result(Linear(vector[:-1], float(vector[-1])), scores[n_labeled:], objective, Status.CONVERGED)
