"""Scores of single rows in float64, where kernel values leave the range of float32."""

import numpy as np

from core.documents.rows import SparseRows
from core.kernels.function import Kernel
from core.kernels.gram import Vector, sparse_squares
from core.numerics.vectors import dot
from core.progress import Checkpoint


def wide_scores(
    kernel: Kernel, support: SparseRows, weights: Vector, rows: SparseRows, checkpoint: Checkpoint
) -> Vector:
    """``Σ_k weights[k] · k(support row k, x)`` of rows x, shape (n_rows,); not finite where even float64 does not hold
    it.

    ``checkpoint`` is called after each row.
    """
    _, columns, values = support.trimmed.csr
    owners, values = support.owners, values.astype(np.float64)
    right, left = sparse_squares(support, checkpoint), sparse_squares(rows, checkpoint)
    scores, column_values = np.empty(rows.n_rows), np.zeros(rows.n_features)
    for row in range(rows.n_rows):
        own = slice(rows.indptr[row], rows.indptr[row + 1])
        column_values[rows.indices[own]] = rows.values[own]
        products = np.asarray(np.bincount(owners, values * column_values[columns], support.n_rows), np.float64)[None]
        column_values[rows.indices[own]] = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            kernel.apply_to_products(products, left[row : row + 1], right)
            scores[row] = dot(products[0], weights)
        checkpoint()
    return scores
