"""Compiled loops over kernel rows and over sparse rows by their columns."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.kernels.function import Float32Matrix
from core.numerics.compiled import compiled
from core.progress import Checkpoint

SLICE = 1 << 19
"""nonzeros between two checkpoints: some 20 ms where they are scattered or new memory is touched"""


class Inverted(NamedTuple):
    """A sparse matrix by its columns: column j owns the slice ``starts[j]:starts[j + 1]`` of ``owners`` (ascending
    rows) and ``values``.
    """

    starts: NDArray[np.int64]
    owners: NDArray[np.uint32]
    values: NDArray[np.float32]


def inverted(rows: SparseRows, counts: NDArray[np.int64], checkpoint: Checkpoint) -> Inverted:
    """The columns of rows, column j with ``counts[j]`` nonzeros; ``checkpoint`` is called between slices."""
    starts = np.concatenate([[0], np.cumsum(counts)])
    columns = Inverted(starts, np.empty(rows.n_nonzeros, np.uint32), np.empty(rows.n_nonzeros, np.float32))
    next_places = starts[:-1].copy()
    for start, stop in rows.slices(SLICE):
        _scatter(*rows.csr, start, stop, next_places, columns.owners, columns.values)
        checkpoint()
    return columns


@compiled
def _scatter(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    next_places: NDArray[np.int64],
    new_owners: NDArray[np.uint32],
    new_values: NDArray[np.float32],
) -> None:
    for i in range(start, stop):
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            place = next_places[np.uintp(indices[k])]
            new_owners[place], new_values[place] = i, values[k]
            next_places[np.uintp(indices[k])] = place + 1


@compiled
def multiply_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    starts: NDArray[np.int64],
    owners: NDArray[np.uint32],
    column_values: NDArray[np.float32],
    positions: NDArray[np.int64],
    n_rows: int,
    out: Float32Matrix,
) -> None:
    """``out[k, i]`` becomes the inner product of rows ``positions[k]`` and i, for all ``n_rows`` rows; only columns
    that the row has are read.
    """
    for k in range(len(positions)):
        row = out[k]
        row[:n_rows] = np.float32(0.0)
        for at in range(np.uintp(indptr[positions[k]]), np.uintp(indptr[positions[k] + 1])):
            value = values[at]
            column = np.uintp(indices[at])
            for place in range(np.uintp(starts[column]), np.uintp(starts[column + np.uintp(1)])):
                row[np.uintp(owners[place])] += value * column_values[place]


@compiled
def add_rows(
    rows: Float32Matrix,
    chosen: NDArray[np.int64],
    weights: NDArray[np.float64],
    start: int,
    stop: int,
    out: NDArray[np.float64],
) -> None:
    """``out[start:stop] += Σ_k weights[k] · rows[chosen[k], start:stop]``: the sums in float64."""
    for k in range(len(chosen)):
        row, weight = rows[chosen[k]], weights[k]
        for i in range(start, stop):
            out[i] += weight * row[i]
