"""The compiled loops of core.documents.reorder, over ranges of rows of CSR arrays."""

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled


@compiled
def count_columns(indices: NDArray[np.uint32], start: int, stop: int, counts: NDArray[np.int64]) -> None:
    """``counts[j]`` grows by the occurrences of column j in a range of nonzeros."""
    for k in range(np.uintp(start), np.uintp(stop)):
        counts[np.uintp(indices[k])] += 1


@compiled
def gather_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    order: NDArray[np.int64],
    column_of: NDArray[np.uint32],
    start: int,
    stop: int,
    new_indptr: NDArray[np.int64],
    new_indices: NDArray[np.uint32],
    new_values: NDArray[np.float32],
) -> None:
    """Row i of the new arrays becomes row ``order[i]`` of the old ones, its columns renamed by ``column_of``."""
    for i in range(start, stop):
        row = order[i]
        target = np.uintp(new_indptr[i])
        for k in range(np.uintp(indptr[row]), np.uintp(indptr[row + 1])):
            new_indices[target] = column_of[np.uintp(indices[k])]
            new_values[target] = values[k]
            target += np.uintp(1)


@compiled
def scatter_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    order: NDArray[np.int64],
    column_of: NDArray[np.uint32],
    start: int,
    stop: int,
    cells: NDArray[np.float32],
    n_columns: int,
) -> None:
    """Write row ``order[i]`` of sparse rows to row i of a matrix of zeros, with columns renamed by ``column_of``."""
    for i in range(start, stop):
        row = order[i]
        first = np.uintp(i * n_columns)
        for k in range(np.uintp(indptr[row]), np.uintp(indptr[row + 1])):
            cells[first + np.uintp(column_of[np.uintp(indices[k])])] = values[k]
