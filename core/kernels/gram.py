"""Rows of the kernel matrix of some documents, computed in blocks; and documents scaled by a power of two, so that
their kernel values are within the range of float32.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder import count_columns
from core.documents.rows import SparseRows, to_dense
from core.kernels.function import Float32Matrix, Kernel, near
from core.kernels.products import SLICE, inverted, multiply_rows
from core.numerics.compiled import compiled
from core.numerics.vectors import Vector as Vector
from core.numerics.vectors import dot
from core.progress import Checkpoint

Positions = NDArray[np.int64]

_LEAST_GAMMA, _LARGEST_GAMMA = 2.0**-40, 2.0**40
"""range of gamma in which rows are not scaled: there no square of a value that counts leaves the range of float32"""
_FARTHEST = 2.0**50
"""scaled values of an RBF kernel beyond this are infinitely far: the least distance that float32 tells from 0 there has
a kernel value of 0"""


class RowsInRange(NamedTuple):
    """Rows times a power of two, which rounds nothing."""

    rows: SparseRows
    kernel: Kernel
    """kernel with the same values on these rows: gamma divided by the square of their scale"""
    isolated: Positions
    """rows that are infinitely far from all others: their kernel values are 0, and so are their values here"""


def scaled_to_range(rows: SparseRows, kernel: Kernel, checkpoint: Checkpoint) -> RowsInRange:
    """The rows, or a scaled copy where gamma or their values would leave the range of float32.

    The linear kernel has no gamma to scale by.
    """
    if kernel.name == "linear":
        return RowsInRange(rows, kernel, np.zeros(0, np.int64))
    exponent = 0 if _LEAST_GAMMA <= kernel.gamma <= _LARGEST_GAMMA else math.frexp(kernel.gamma)[1] // 2
    isolated = (
        _rows_beyond(rows, math.ldexp(_FARTHEST, -exponent), checkpoint)
        if kernel.name == "rbf"
        else np.zeros(0, np.int64)
    )
    if exponent == 0 and not len(isolated):
        return RowsInRange(rows, kernel, isolated)
    scaled = scaled_by(rows, exponent, checkpoint)
    for row in isolated:
        scaled.values[scaled.indptr[row] : scaled.indptr[row + 1]] = 0.0
    return RowsInRange(scaled, kernel._replace(gamma=math.ldexp(kernel.gamma, -2 * exponent)), isolated)


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


_DENSE_GAIN = 16
"""multiplications of a dense product in the time of one of a sparse product (measured: 50 in tall blocks, 5 in those of
two rows, as they are requested once the cache is full)"""
_SPARSE_NANOSECONDS = 1.0
_APPLY_NANOSECONDS = 1.0
_BLOCK_NANOSECONDS = 2e7
_TALLEST = 128
_LARGEST = 1e37
_ISOLATED_NORM = np.float32(1e38)
"""|x|² of a row that is infinitely far from all others"""


class Gram:
    """The kernel matrix of ``rows``, computed by rows.

    Dense documents are multiplied as dense matrices in float32, sparse ones through their columns, whichever is
    estimated to take less time. Of sparse ones all processors compute the same bits; so they do of dense ones that are
    to be ``reproducible``. With ``weights``, of shape (n_rows,) and summing to 1, there is one more point behind the
    rows: their weighted mean in the space of the kernel (Eqn. 1.15 of Collobert et al.). Its row is known once
    ``set_mean`` was called. ``checkpoint`` is called between slices of the preparations.
    """

    def __init__(
        self,
        rows: SparseRows,
        kernel: Kernel,
        weights: Vector | None = None,
        checkpoint: Checkpoint = lambda: None,
        reproducible: bool = False,
    ) -> None:
        self.kernel, self.weights = kernel, weights
        self.n_points = rows.n_rows + (weights is not None)
        self.mean = np.zeros(self.n_points, np.float32)
        self._rows, self._scaled_kernel, isolated = scaled_to_range(rows, kernel, checkpoint)
        counts = _counts(self._rows, checkpoint)
        sparse, dense = float(counts @ counts.astype(np.float64)), float(rows.n_rows) ** 2 * rows.n_features
        by_blas = dense <= _DENSE_GAIN * sparse and not reproducible
        self._dense = dense_copy(self._rows, kernel, checkpoint) if by_blas else None
        self._inverted = inverted(self._rows, counts, checkpoint) if self._dense is None else None
        norms = (
            squares_of(self._dense, checkpoint) if self._dense is not None else sparse_squares(self._rows, checkpoint)
        )
        self._norms = np.minimum(norms, _LARGEST).astype(np.float32)
        self._norms[isolated] = _ISOLATED_NORM
        values = self._scaled_kernel.diagonal(norms)
        self.out_of_range = np.flatnonzero(~((norms < _LARGEST) & (np.abs(values) < _LARGEST)))
        """positions of the rows whose kernel values leave the range of float32"""
        self.diagonal = np.zeros(self.n_points)
        self.diagonal[: rows.n_rows] = values
        work = (
            min(sparse, dense / _DENSE_GAIN) / max(1, rows.n_rows) * _SPARSE_NANOSECONDS
            + rows.n_rows * _APPLY_NANOSECONDS
        )
        self.height = int(min(_TALLEST, max(1, _BLOCK_NANOSECONDS // max(1.0, work))))
        """rows that one thread computes in about 20 ms"""

    @property
    def reproducible(self) -> bool:
        """Whether all processors compute the same bits.

        BLAS multiplies dense documents, and chooses its loops by the processor.
        """
        return self._dense is None

    @property
    def fits_float32(self) -> bool:
        """Whether all kernel values are within the range of float32."""
        return not len(self.out_of_range)

    def set_mean(self, sums: Vector) -> None:
        """Set the mean's kernel values with all rows: ``sums`` of shape (n_rows,)."""
        assert self.weights is not None
        self.mean[:-1] = sums
        self.mean[-1] = self.diagonal[-1] = dot(self.weights, sums)

    def fill(self, positions: Positions, out: Float32Matrix) -> None:
        """Write the kernel rows of these points to ``out``, shape (len(positions), n_points), in C order."""
        n_rows = self._rows.n_rows
        last = np.flatnonzero(positions == n_rows)
        inside = np.minimum(positions, n_rows - 1)
        if self._dense is not None:
            np.matmul(self._dense[inside], self._dense.T, out=out[:, :n_rows])
        else:
            assert self._inverted is not None
            multiply_rows(*self._rows.csr, *self._inverted, inside, n_rows, out)
        apply_to_products(self._scaled_kernel, out, self._norms[inside], self._norms)
        out[np.arange(len(inside)), inside] = self.diagonal[inside]
        if self.weights is not None:
            out[:, -1] = self.mean[inside]
            out[last] = self.mean


def _counts(rows: SparseRows, checkpoint: Checkpoint) -> NDArray[np.int64]:
    """Nonzeros of each column."""
    counts = np.zeros(rows.n_features, np.int64)
    for start, stop in rows.slices(SLICE):
        count_columns(rows.indices, rows.indptr[start], rows.indptr[stop], counts)
        checkpoint()
    return counts


def dense_copy(rows: SparseRows, kernel: Kernel, checkpoint: Checkpoint) -> Float32Matrix:
    """The rows as a dense matrix; ``checkpoint`` is called between slices.

    For an RBF kernel their mean is subtracted, since float32 would lose distances beside the rows' own length. Far rows
    have no part in the mean.
    """
    dense = np.empty((rows.n_rows, rows.n_features), np.float32)
    for part in _strips(dense):
        own = rows.between(part.start, part.stop)
        dense[part] = to_dense(own, own.trimmed.indices)
        checkpoint()
    if kernel.name == "rbf":
        centre = _centre(dense, near(squares_of(dense, checkpoint)), checkpoint)
        for part in _strips(dense):
            dense[part] -= centre
            checkpoint()
    return dense


def _centre(dense: Float32Matrix, chosen: NDArray[np.bool_], checkpoint: Checkpoint) -> NDArray[np.float32]:
    """The mean of some rows, shape (n_features,)."""
    sums = np.zeros(dense.shape[1])
    for part in _strips(dense):
        rows = dense[part] if chosen[part].all() else dense[part][chosen[part]]
        sums += rows.sum(axis=0, dtype=np.float64)
        checkpoint()
    return np.asarray(sums / max(1, int(np.count_nonzero(chosen))), np.float32)


def squares_of(dense: Float32Matrix, checkpoint: Checkpoint) -> Vector:
    """|x|² of each row; ``checkpoint`` is called between slices."""
    squares = np.empty(len(dense))
    for part in _strips(dense):
        np.einsum("ij,ij->i", dense[part], dense[part], dtype=np.float64, out=squares[part])
        checkpoint()
    return squares


def _strips(dense: Float32Matrix) -> Iterator[slice]:
    """Ranges of rows of some million numbers each."""
    height = max(1, SLICE // max(1, dense.shape[1]))
    yield from (slice(start, min(start + height, len(dense))) for start in range(0, len(dense), height))


def sparse_squares(rows: SparseRows, checkpoint: Checkpoint) -> Vector:
    """|x|² of each row; ``checkpoint`` is called between slices."""
    squares = np.zeros(rows.n_rows)
    for start, stop in rows.slices(SLICE):
        values = rows.values[rows.indptr[start] : rows.indptr[stop]].astype(np.float64)
        owners = rows.between(start, stop).owners
        squares[start:stop] = np.bincount(owners, values * values, stop - start)
        checkpoint()
    return squares


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


_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
"""ln 2 in two parts, of which the first has few enough digits that its product with an exponent is exact"""
_ROUNDER = np.float32(12582912.0)
"""1.5 · 2²³: added and taken off again it rounds to an integer"""
_EXPONENT_BIAS = np.int32(0x4B400000 - 127)
"""bits of ``_ROUNDER`` less the bias of exponents"""
_LEAST = np.float32(-87.0)
"""power from which on the exponential counts as 0"""
_TWO, _ONE, _HALF, _ZERO = np.float32(2.0), np.float32(1.0), np.float32(0.5), np.float32(0.0)
# 1/k! for k from 3 to 7: beyond, nothing is left of a float32 for powers within half of ln 2
_C3, _C4, _C5, _C6, _C7 = (np.float32(1.0 / factorial) for factorial in (6, 24, 120, 720, 5040))
_STRIP = 256


def apply_to_products(
    kernel: Kernel, products: Float32Matrix, left: NDArray[np.float32], right: NDArray[np.float32]
) -> None:
    """Replace inner products by kernel values in the first ``len(right)`` columns of ``products``, which is in C order.

    ``left`` and ``right`` are |x|² and |z|², shape (n_left,) and (n_right,).
    """
    if kernel.name == "rbf":
        _rbf(products, left, right, np.float32(kernel.gamma))
    elif kernel.name == "poly":
        _poly(products, len(right), np.float32(kernel.gamma), np.float32(kernel.coef0), kernel.degree)


@compiled
def _rbf(products: Float32Matrix, left: NDArray[np.float32], right: NDArray[np.float32], gamma: np.float32) -> None:
    """``exp(−gamma (|x|² + |z|² − 2 x·z))``; the norms are added up first, so that k(x, z) and k(z, x) are the same
    number.
    """
    for i in range(len(left)):
        row, own = products[i], left[i]
        for j in range(len(right)):
            distance = (own + right[j]) - _TWO * row[j]
            distance = distance if distance > _ZERO else _ZERO
            power = -gamma * distance
            within = power if power > _LEAST else _LEAST
            rounded = within * _LOG2_E + _ROUNDER
            exponent = rounded - _ROUNDER
            r = (within - exponent * _LN2_HIGH) - exponent * _LN2_LOW
            series = _C7 * r + _C6
            series = series * r + _C5
            series = series * r + _C4
            series = series * r + _C3
            series = series * r + _HALF
            series = series * (r * r) + r + _ONE
            scale = np.int32((np.float32(rounded).view(np.int32) - _EXPONENT_BIAS) << np.int32(23)).view(np.float32)
            row[j] = series * scale if power > _LEAST else _ZERO


@compiled
def _poly(products: Float32Matrix, n_right: int, gamma: np.float32, coef0: np.float32, degree: int) -> None:
    """``(gamma x·z + coef0)^degree``, the powers by multiplication."""
    base = np.empty(_STRIP, np.float32)
    for i in range(len(products)):
        row = products[i]
        for start in range(0, n_right, _STRIP):
            stop = min(start + _STRIP, n_right)
            for j in range(start, stop):
                base[j - start] = gamma * row[j] + coef0
                row[j] = base[j - start]
            for _ in range(degree - 1):
                for j in range(start, stop):
                    row[j] *= base[j - start]
