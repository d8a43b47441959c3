"""Assembles the solutions of two-class problems into one model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import Compact, gathered
from core.documents.rows import SparseRows
from core.engine.csr_loops import adjoint_rows
from core.models.kernel import KernelModel
from core.models.linear import LinearModel
from core.models.model import Model
from core.problem.result import Decision, Expansion, Linear


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
        return LinearModel(list(classes), n_features, documents.features, coefficients, intercepts)
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
