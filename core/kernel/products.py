"""The compiled loops over kernel rows and inverted rows."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.loops import compiled
from core.rows import SparseRows

Block = NDArray[np.float32]


class Inverted(NamedTuple):
    """A sparse matrix by its columns: column j owns the slice ``starts[j]:starts[j + 1]`` of ``owners`` (ascending rows) and ``values``."""

    starts: NDArray[np.int64]
    owners: NDArray[np.uint32]
    values: NDArray[np.float32]


def inverted(rows: SparseRows) -> Inverted:
    """The columns of rows."""
    starts = np.zeros(rows.n_features + 1, np.int64)
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    np.cumsum(np.bincount(rows.indices[first:last], minlength=rows.n_features), out=starts[1:])
    owners, values = np.empty(last - first, np.uint32), np.empty(last - first, np.float32)
    _scatter(*rows[:3], starts[:-1].copy(), owners, values)
    return Inverted(starts, owners, values)


@compiled
def _scatter(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    places: NDArray[np.int64],
    new_owners: NDArray[np.uint32],
    new_values: NDArray[np.float32],
) -> None:
    for i in range(len(indptr) - 1):
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            place = places[np.uintp(indices[k])]
            new_owners[place], new_values[place] = i, values[k]
            places[np.uintp(indices[k])] = place + 1


@compiled
def multiply_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    starts: NDArray[np.int64],
    owners: NDArray[np.uint32],
    column_values: NDArray[np.float32],
    positions: NDArray[np.int64],
    out: Block,
) -> None:
    """``out[k, i]`` becomes the inner product of rows ``positions[k]`` and i; only the columns that a row has are read."""
    for k in range(len(positions)):
        row = out[k]
        row[:] = np.float32(0.0)
        for at in range(np.uintp(indptr[positions[k]]), np.uintp(indptr[positions[k] + 1])):
            value = values[at]
            column = np.uintp(indices[at])
            for place in range(np.uintp(starts[column]), np.uintp(starts[column + np.uintp(1)])):
                row[np.uintp(owners[place])] += value * column_values[place]


@compiled
def add_rows(rows: Block, chosen: NDArray[np.int64], weights: NDArray[np.float64], start: int, stop: int, out: NDArray[np.float64]) -> None:
    """``out[start:stop] += Σ_k weights[k] · rows[chosen[k], start:stop]``: the sums in float64."""
    for k in range(len(chosen)):
        row, weight = rows[chosen[k]], weights[k]
        for i in range(start, stop):
            out[i] += weight * row[i]
