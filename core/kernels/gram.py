"""Rows of the kernel matrix of some documents, in blocks."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from core.documents.reorder_loops import count_columns
from core.documents.rows import SparseRows, to_dense
from core.kernels.function import Float32Matrix, Kernel, Name
from core.kernels.products import SLICE, inverted, multiply_rows
from core.progress import Checkpoint

Vector = NDArray[np.float64]
Positions = NDArray[np.int64]

_DENSE_GAIN = 16
"""a multiplication in a dense product takes this small a share of the time of one in a sparse product (measured: 1/50 of it in tall blocks, 1/5 in
those of two rows, as they are asked for once the cache is full)"""
_SPARSE_NANOSECONDS = 1.0
_APPLY_NANOSECONDS = 1.0
_BLOCK_NANOSECONDS = 2e7
_TALLEST = 128
_LARGEST = 1e37
_FLAT = 1e-12


class Gram:
    """The kernel matrix of ``rows``, of which any rows can be computed.

    Dense documents are multiplied as dense matrices in float32, sparse ones through their columns, whichever is estimated to take less time.
    With ``weights``, of shape (n_rows,) and summing to 1, there is one more point behind the rows: their weighted mean in the space of
    the kernel (Eqn. 1.15 of Collobert et al.); its row is known when ``mean`` has been set.
    ``checkpoint`` is called between slices of the preparations; what it raises ends them.
    """

    def __init__(self, rows: SparseRows, kernel: Kernel, weights: Vector | None = None, checkpoint: Checkpoint = lambda: None) -> None:
        self.kernel, self.rows, self.weights = kernel, rows, weights
        self.n_points = rows.n_rows + (weights is not None)
        self.mean = np.zeros(self.n_points, np.float32)
        counts = _counts(rows, checkpoint)
        sparse, dense = float(counts @ counts.astype(np.float64)), float(rows.n_rows) ** 2 * rows.n_features
        self._dense = dense_copy(rows, kernel, checkpoint) if dense <= _DENSE_GAIN * sparse else None
        self._inverted = inverted(rows, counts, checkpoint) if self._dense is None else None
        norms = squares_of(self._dense, checkpoint) if self._dense is not None else _sparse_squares(rows, checkpoint)
        largest = (norms.max(initial=0.0), np.abs(kernel.diagonal(norms)).max(initial=0.0), abs(kernel.gamma), abs(kernel.coef0))
        self.fits_float32 = bool(max(largest) < _LARGEST)
        """whether nothing leaves the range of float32"""
        self._norms = np.minimum(norms, _LARGEST).astype(np.float32)
        self.diagonal = np.zeros(self.n_points)
        self.diagonal[: rows.n_rows] = kernel.diagonal(norms)
        work = min(sparse, dense / _DENSE_GAIN) / max(1, rows.n_rows) * _SPARSE_NANOSECONDS + rows.n_rows * _APPLY_NANOSECONDS
        self.height = int(min(_TALLEST, max(1, _BLOCK_NANOSECONDS // max(1.0, work))))
        """rows that one thread computes in about 20 ms"""

    def set_mean(self, sums: Vector) -> None:
        """Let the mean's kernel values with all rows be known: ``sums`` of shape (n_rows,)."""
        assert self.weights is not None
        self.mean[:-1] = sums
        self.mean[-1] = self.diagonal[-1] = self.weights @ sums

    def fill(self, positions: Positions, out: Float32Matrix) -> None:
        """Write the kernel rows of these points to ``out``, shape (len(positions), n_points)."""
        n_rows = self.rows.n_rows
        last = np.flatnonzero(positions == n_rows)
        inside = np.minimum(positions, n_rows - 1)
        values = out[:, :n_rows]
        if self._dense is not None:
            np.matmul(self._dense[inside], self._dense.T, out=values)
        else:
            assert self._inverted is not None
            multiply_rows(*self.rows[:3], *self._inverted, inside, values)
        self.kernel.apply_to_products(values, self._norms[inside], self._norms)
        out[np.arange(len(inside)), inside] = self.diagonal[inside]
        if self.weights is not None:
            out[:, -1] = self.mean[inside]
            out[last] = self.mean


def resolve_kernel(name: Name, gamma: float | str, degree: int, coef0: float, rows: SparseRows, checkpoint: Checkpoint = lambda: None) -> Kernel:
    """The kernel that options name, ``gamma`` taken from these rows if it is ``scale`` or ``median``.

    scale: 1 / (n_features · variance over all values, zeros included), as scikit-learn has it; n_features are those that occur. median: 1 / (2 m²),
    m being the median of the distances of at most 1,000 rows, evenly spaced. Where all values, or all rows, are the same: 1.
    ``checkpoint`` as in Gram.
    """
    if gamma == "scale":
        gamma = _scale(rows, checkpoint)
    elif gamma == "median":
        gamma = _median_width(rows, checkpoint)
    return Kernel(name, float(gamma), degree, coef0)


_SAMPLE = 1_000


def _scale(rows: SparseRows, checkpoint: Checkpoint) -> float:
    total = squares = 0.0
    for start, stop in rows.slices(SLICE):
        values = rows.values[rows.indptr[start] : rows.indptr[stop]].astype(np.float64)
        total, squares = total + float(values.sum()), squares + float(values @ values)
        checkpoint()
    size = max(1, rows.n_rows)
    spread = squares / size - total**2 / (size**2 * max(1, rows.n_features))
    return 1.0 / spread if spread > _FLAT * squares / size else 1.0


def _median_width(rows: SparseRows, checkpoint: Checkpoint) -> float:
    chosen = np.unique(np.linspace(0, rows.n_rows - 1, min(_SAMPLE, rows.n_rows)).round().astype(np.int64))
    gram = Gram(rows.taken(chosen), Kernel("linear"), None, checkpoint)
    products = np.empty((len(chosen), len(chosen)), np.float32)
    for start in range(0, len(chosen), gram.height):
        part = np.arange(start, min(start + gram.height, len(chosen)))
        gram.fill(part, products[part[0] : part[-1] + 1])
        checkpoint()
    squares = gram.diagonal[:, None] + gram.diagonal - 2.0 * products
    distances = np.sqrt(np.maximum(squares[np.triu_indices(len(chosen), 1)], 0.0))
    positive = distances[distances > 0]
    if not len(positive):
        return 1.0
    middle = float(np.median(distances)) or float(np.median(positive))
    return 1.0 / (2.0 * middle**2)


def _counts(rows: SparseRows, checkpoint: Checkpoint) -> NDArray[np.int64]:
    """Nonzeros of each column."""
    counts = np.zeros(rows.n_features, np.int64)
    for start, stop in rows.slices(SLICE):
        count_columns(rows.indices, rows.indptr[start], rows.indptr[stop], counts)
        checkpoint()
    return counts


def dense_copy(rows: SparseRows, kernel: Kernel, checkpoint: Checkpoint) -> Float32Matrix:
    """The rows as a dense matrix; for distances off their centre, so that these do not drown in the rows' own length. ``checkpoint`` as in Gram."""
    dense = np.empty((rows.n_rows, rows.n_features), np.float32)
    sums = np.zeros(rows.n_features)
    for part in _strips(dense):
        own = rows.between(part.start, part.stop)
        dense[part] = to_dense(own, own.indices[own.indptr[0] : own.indptr[-1]])
        sums += dense[part].sum(axis=0, dtype=np.float64)
        checkpoint()
    if kernel.name == "rbf":
        centre = (sums / max(1, rows.n_rows)).astype(np.float32)
        for part in _strips(dense):
            dense[part] -= centre
            checkpoint()
    return dense


def squares_of(dense: Float32Matrix, checkpoint: Checkpoint) -> Vector:
    """|x|² of each row."""
    squares = np.empty(len(dense))
    for part in _strips(dense):
        np.einsum("ij,ij->i", dense[part], dense[part], dtype=np.float64, out=squares[part])
        checkpoint()
    return squares


def _strips(dense: Float32Matrix) -> Iterator[slice]:
    """Ranges of rows of some million numbers each."""
    height = max(1, SLICE // max(1, dense.shape[1]))
    yield from (slice(start, min(start + height, len(dense))) for start in range(0, len(dense), height))


def _sparse_squares(rows: SparseRows, checkpoint: Checkpoint) -> Vector:
    squares = np.zeros(rows.n_rows)
    for start, stop in rows.slices(SLICE):
        values = rows.values[rows.indptr[start] : rows.indptr[stop]].astype(np.float64)
        owners = np.repeat(np.arange(stop - start), np.diff(rows.indptr[start : stop + 1]))
        squares[start:stop] = np.bincount(owners, values * values, stop - start)
        checkpoint()
    return squares
