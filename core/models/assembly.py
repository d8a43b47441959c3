"""From solutions to a model and back: assembles the solutions of two-class problems, and takes starting points (warm
start) from the model of nearly the same documents.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import Compact, gathered
from core.documents.rows import SparseRows
from core.engine.csr_loops import adjoint_rows
from core.models.kernel import KernelModel
from core.models.model import LinearModel, Model
from core.numerics.elementary import Matrix
from core.one_vs_rest import n_problems, positives_of
from core.problem import Decision, Expansion, Linear
from core.progress import Checkpoint
from core.registry import Algorithm

_SLICE = 1 << 24
"""products that are computed between two checkpoints"""


def model_of(
    documents: Compact,
    order: NDArray[np.int64],
    n_features: int,
    classes: Sequence[str | int],
    decisions: Sequence[Decision],
) -> Model:
    """The model of solutions over the same rows: one for two classes, one a class for more.

    ``order`` of shape (n_rows,) holds the position of each row among the original documents; ``n_features`` is their
    number of features.
    """
    linear = [collapsed(decision, documents.rows) for decision in decisions]
    intercepts = np.array([decision.intercept for decision in decisions])
    if all(isinstance(decision, Linear) for decision in linear):
        coefficients = np.column_stack([decision.coefficients for decision in linear if isinstance(decision, Linear)])
        return LinearModel(
            list(classes), n_features, documents.features, coefficients, intercepts, terms=documents.terms
        )
    assert documents.terms is None  # a kernel is of rows between which distances are meaningful
    expansions = [decision for decision in decisions if isinstance(decision, Expansion)]
    kept = support(expansions)
    weights = np.zeros((len(kept), len(expansions)))
    for column, expansion in enumerate(expansions):
        weights[np.searchsorted(kept, expansion.rows), column] = expansion.weights
    # an expansion without rows may have been stopped before its kernel was known
    kernel = next((expansion.kernel for expansion in expansions if len(expansion.rows)), expansions[0].kernel)
    rows, scales = gathered(documents.rows, kept), expansions[0].scales
    if scales is not None:
        rows = rows._replace(values=(rows.values * scales[rows.indices]).astype(np.float32))
    return KernelModel(
        list(classes),
        n_features,
        documents.features,
        rows,
        weights,
        intercepts,
        kernel,
        positions=order[kept],
        scales=scales,
    )


def collapsed(decision: Decision, rows: SparseRows) -> Decision:
    """An expansion in the linear kernel as coefficients; any other decision as it is."""
    if isinstance(decision, Linear) or decision.kernel.name != "linear":
        return decision
    weights, sums = np.zeros(rows.n_rows), np.zeros(rows.n_features + 1)
    weights[decision.rows] = decision.weights
    adjoint_rows(rows.indptr, rows.indices, rows.values, 0, rows.n_rows, weights, sums)
    return Linear(sums[:-1], decision.intercept)


def support(expansions: Sequence[Expansion]) -> NDArray[np.int64]:
    """The rows that at least one expansion keeps, ascending."""
    return np.unique(np.concatenate([expansion.rows for expansion in expansions]))


_WORK = 1 << 22
"""most multiplications between two checkpoints: some 20 ms"""

Points = list[NDArray[np.float64] | None]


def starting_points(
    start: Model | None,
    algorithm: Algorithm,
    rows: SparseRows,
    order: NDArray[np.int64],
    features: NDArray[np.uint32],
    classes: Sequence[str | int],
    checkpoint: Checkpoint,
) -> Points:
    """The starting point of each two-class problem's solver, None where ``start`` has none, or where there is none.

    Solvers start from coefficients of the ``features`` that occur, shape (n_columns + 1,), or from the scores of all
    rows in ``order``: the registry says which. Every model gives scores, a linear one coefficients. ``checkpoint`` is
    called between blocks of rows; what it raises ends the work.
    """
    if start is None:
        return [None] * n_problems(len(classes))
    columns = [_column(start, classes, positive) for positive in positives_of(len(classes))]
    if algorithm.start == "scores":
        return _scores(start, columns, rows, order, checkpoint)
    if algorithm.start == "coefficients" and isinstance(start, LinearModel):
        return [None if column is None else _coefficients(start, features, column) for column in columns]
    return [None] * len(columns)


def _scores(
    start: Model, columns: list[int | None], rows: SparseRows, order: NDArray[np.int64], checkpoint: Checkpoint
) -> Points:
    """A column of scores for each problem, in blocks of rows that are little work for the model, so that memory holds
    no scores twice.
    """
    points: Points = [None if column is None else np.empty(rows.n_rows) for column in columns]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    n_columns = start.n_columns
    for first, last in rows.slices(max(1, _WORK // n_columns), max(1, start.row_work // n_columns)):
        scores = start.scores(rows.between(first, last))
        for point, column in zip(points, columns, strict=True):
            if point is not None:
                point[place[first:last]] = scores[:, column]
        checkpoint()
    return points


def _column(start: Model, classes: Sequence[str | int], positive: int) -> int | None:
    """The column of scores that ``start`` has for one two-class problem, if any."""
    if len(classes) == 2 or len(start.classes) == 2:
        return 0 if list(start.classes) == list(classes) else None
    return start.classes.index(classes[positive]) if classes[positive] in start.classes else None


def _coefficients(start: LinearModel, features: NDArray[np.uint32], column: int) -> NDArray[np.float64]:
    init = np.zeros(len(features) + 1)
    _, here, there = np.intersect1d(features, start.features, assume_unique=True, return_indices=True)
    init[here] = start.coefficients[there, column]
    init[-1] = start.intercepts[column]
    return init


def scores_in_slices(model: LinearModel, rows: SparseRows, checkpoint: Checkpoint) -> Matrix:
    """Scores of all rows, shape (n_rows, n_problems); ``checkpoint`` is called between slices, and may raise."""
    scores = np.empty((rows.n_rows, model.n_columns))
    for start, stop in rows.slices(max(1, _SLICE // model.n_columns)):
        scores[start:stop] = model.scores(rows.between(start, stop))
        checkpoint()
    return scores
