"""Rows of a CSR matrix from arrays of any numeric type."""

from typing import Any

import numpy as np

from core.documents.rows import SparseRows


def rows_of(
    indptr: np.ndarray[Any, Any],
    indices: np.ndarray[Any, Any],
    values: np.ndarray[Any, Any],
    n_features: int | None = None,
) -> SparseRows:
    """The rows of these arrays; ``n_features`` is by default the largest index plus one."""
    if n_features is None:
        n_features = int(indices.max()) + 1 if len(indices) else 0
    return SparseRows(
        indptr.astype(np.int64, copy=False), indices.astype(np.uint32, copy=False), narrowed(values), n_features
    )


@np.errstate(over="ignore")
def narrowed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The values as float32, in C order.

    A value beyond float32 becomes infinite, which the check of all rows refuses.
    """
    return values.astype(np.float32, order="C", copy=False)
