"""Scales rows by a power of two, so that their kernel values are within the range of float32."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.kernels.function import Kernel
from core.kernels.products import SLICE
from core.progress import Checkpoint

Positions = NDArray[np.int64]

_LEAST_GAMMA, _LARGEST_GAMMA = 2.0**-40, 2.0**40
"""range of gamma in which rows are not scaled: there no square of a value that counts leaves the range of float32"""
_FARTHEST = 2.0**50
"""scaled values of an RBF kernel beyond this are infinitely far: the least distance that float32 tells from 0 there has
a kernel value of 0"""


class ScaledRows(NamedTuple):
    """Rows times a power of two, which rounds nothing."""

    rows: SparseRows
    kernel: Kernel
    """kernel with the same values on these rows: gamma divided by the square of their scale"""
    isolated: Positions
    """rows that are infinitely far from all others: their kernel values are 0, and so are their values here"""


def scaled_to_range(rows: SparseRows, kernel: Kernel, checkpoint: Checkpoint) -> ScaledRows:
    """The rows, or a scaled copy where gamma or their values would leave the range of float32.

    The linear kernel has no gamma to scale by.
    """
    if kernel.name == "linear":
        return ScaledRows(rows, kernel, np.zeros(0, np.int64))
    exponent = 0 if _LEAST_GAMMA <= kernel.gamma <= _LARGEST_GAMMA else math.frexp(kernel.gamma)[1] // 2
    isolated = (
        _rows_beyond(rows, math.ldexp(_FARTHEST, -exponent), checkpoint)
        if kernel.name == "rbf"
        else np.zeros(0, np.int64)
    )
    if exponent == 0 and not len(isolated):
        return ScaledRows(rows, kernel, isolated)
    scaled = scaled_by(rows, exponent, checkpoint)
    for row in isolated:
        scaled.values[scaled.indptr[row] : scaled.indptr[row + 1]] = 0.0
    return ScaledRows(scaled, kernel._replace(gamma=math.ldexp(kernel.gamma, -2 * exponent)), isolated)


def scaled_by(rows: SparseRows, exponent: int, checkpoint: Checkpoint) -> SparseRows:
    """A copy of the rows, their values times two to this power; ``checkpoint`` is called between slices."""
    own = rows.trimmed
    values = np.empty(own.n_nonzeros, np.float32)
    for start, stop in own.slices(SLICE):
        part = slice(int(own.indptr[start]), int(own.indptr[stop]))
        with np.errstate(over="ignore"):  # Gram says which rows are out of range
            values[part] = np.ldexp(own.values[part].astype(np.float64), exponent)
        checkpoint()
    return own._replace(values=values)


def _rows_beyond(rows: SparseRows, bound: float, checkpoint: Checkpoint) -> Positions:
    """Rows with a value beyond ``bound``, ascending."""
    found, bound = [np.zeros(0, np.int64)], min(bound, float(np.finfo(np.float32).max))
    for start, stop in rows.slices(SLICE):
        first = rows.indptr[start]
        beyond = np.flatnonzero(np.abs(rows.values[first : rows.indptr[stop]]) > bound)
        found.append(np.unique(np.searchsorted(rows.indptr, beyond + first, side="right") - 1))
        checkpoint()
    return np.concatenate(found)
