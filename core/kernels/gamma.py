"""The rules that take gamma from the documents: ``scale`` and ``median``."""

import math

import numpy as np

from core.documents.rows import SparseRows
from core.kernels.function import Kernel, Name, near
from core.kernels.gram import Gram, Vector, scaled_by, sparse_squares
from core.kernels.products import SLICE
from core.numerics.vectors import dot, lane_sum
from core.progress import Checkpoint

_FLAT = 1e-12
"""share of the mean |x|² below which the variance of all values counts as 0"""
_AUTO = 1 / 16
"""gamma by the rule ``auto`` in units of ``scale``: smooth, nearly linear (measured: the best with 20 and 50 labels of
eight sets, with a large C)"""
_SAMPLE = 1_000
"""rows, at most, whose distances the median is taken of"""


def resolve_kernel(
    name: Name, gamma: float | str, degree: int, coef0: float, rows: SparseRows, checkpoint: Checkpoint = lambda: None
) -> Kernel:
    """The kernel that options name; the rules ``scale`` and ``median`` are resolved over these rows.

    auto: what suits an RBF kernel of few documents, a part of ``scale``; of other kernels ``scale``.
    scale: 1 / (n_features · variance over all values, zeros included), as in scikit-learn; n_features are those that
    occur. median: 1 / (2 m²), m being the median of the distances of at most 1,000 rows, evenly spaced. Far rows have
    no part in either. Where all values, or all rows, are the same: 1. ``checkpoint`` is called between slices.
    """
    if gamma in ("scale", "auto"):
        gamma = _scale(rows, checkpoint) * (_AUTO if gamma == "auto" and name == "rbf" else 1.0)
    elif gamma == "median":
        gamma = _median(rows, checkpoint)
    return Kernel(name, float(gamma), degree, coef0)


def _scale(rows: SparseRows, checkpoint: Checkpoint) -> float:
    chosen = near(sparse_squares(rows, checkpoint))
    total = squares = 0.0
    for start, stop in rows.slices(SLICE):
        values = rows.values[rows.indptr[start] : rows.indptr[stop]].astype(np.float64)
        if not chosen[start:stop].all():
            values = values[np.repeat(chosen[start:stop], np.diff(rows.indptr[start : stop + 1]))]
        total, squares = total + lane_sum(values, len(values)), squares + dot(values, values)
        checkpoint()
    size = max(1, int(np.count_nonzero(chosen)))
    variance = squares / size - total**2 / (size**2 * max(1, rows.n_features))
    return 1.0 / variance if variance > _FLAT * squares / size else 1.0


def _median(rows: SparseRows, checkpoint: Checkpoint) -> float:
    sample = rows.taken(np.unique(np.linspace(0, rows.n_rows - 1, min(_SAMPLE, rows.n_rows)).round().astype(np.int64)))
    norms = sparse_squares(sample, checkpoint)
    chosen = np.flatnonzero(near(norms))
    largest = float(norms[chosen].max(initial=0.0))
    if largest == 0.0:
        return 1.0
    # scaled by a power of two to a length of about 1, so that float32 holds the squares
    exponent = -(math.frexp(largest)[1] // 2)
    distances = _distances(scaled_by(sample.taken(chosen), exponent, checkpoint), checkpoint)
    positive = distances[distances > 0]
    if not len(positive):
        return 1.0
    middle = math.ldexp(float(np.median(distances)) or float(np.median(positive)), -exponent)
    return 1.0 / (2.0 * middle**2)


def _distances(rows: SparseRows, checkpoint: Checkpoint) -> Vector:
    """The distances of all pairs of rows."""
    gram = Gram(rows, Kernel("linear"), None, checkpoint)
    products = np.empty((rows.n_rows, rows.n_rows), np.float32)
    for start in range(0, rows.n_rows, gram.height):
        part = np.arange(start, min(start + gram.height, rows.n_rows))
        gram.fill(part, products[part[0] : part[-1] + 1])
        checkpoint()
    squares = gram.diagonal[:, None] + gram.diagonal - 2.0 * products
    return np.asarray(np.sqrt(np.maximum(squares[np.triu_indices(rows.n_rows, 1)], 0.0)))
