"""Active learning: which unlabeled documents to label next. Uncertainty sampling by margins, and representatives of the uncertain ones.

Conventions: positions are those of documents in their dataset. A margin is the difference of a document's two likeliest classes, in probability where
that is known, else in score.
Sources: Settles, Active learning literature survey, 2009 (margins); Nemhauser, Wolsey & Fisher, An analysis of approximations for maximizing
submodular set functions, 1978 (the greedy method comes within 1 − 1/e of the best); Minoux, Accelerated greedy algorithms for maximizing submodular
set functions, 1978 (gains only fall, so that most need not be computed again).
"""

import heapq
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.one_vs_rest import labels_of

POOL = 3
"""factor on the number of documents requested: representatives are selected among so many of least margin"""
MOST_NONZEROS = 1 << 23
"""most nonzeros of the documents that are compared with each other, or bytes of their text, which has fewer nonzeros"""
_BLOCK = 256
_DENSE = 8
"""most numbers a nonzero for which rows are made dense: a dense product is as many times as fast"""

Margins = NDArray[np.float64]


class TopTwo(NamedTuple):
    """The two likeliest classes of each document, shape (n_rows,) each, and the margin between them."""

    first: NDArray[np.intp]
    second: NDArray[np.intp]
    margins: Margins


def top_two(values: NDArray[np.float64]) -> TopTwo:
    """By ``values`` of shape (n_rows, n_classes), larger for likelier classes; or of one column, positive for the second of two classes."""
    first = labels_of(values)
    if values.shape[1] == 1:
        return TopTwo(first, 1 - first, np.abs(values[:, 0]))
    everyone, others = np.arange(len(values)), values.copy()
    others[everyone, first] = -np.inf
    second = np.argmax(others, axis=1)
    return TopTwo(first, second, values[everyone, first] - values[everyone, second])


class SmallestMargins:
    """The documents of least margin among any number that are added; holds no more than ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.positions: NDArray[np.int64] = np.zeros(0, np.int64)
        """positions by ascending margin, of equals the first"""
        self.margins: Margins = np.zeros(0)

    def add(self, positions: NDArray[np.int64], margins: Margins) -> None:
        """Add documents, shape (n_rows,) each."""
        if len(self.margins) == self._most:
            near = margins <= self.margins[-1]
            positions, margins = positions[near], margins[near]
        positions, margins = np.append(self.positions, positions), np.append(self.margins, margins)
        order = np.lexsort((positions, margins))[: self._most]
        self.positions, self.margins = positions[order], margins[order]


def comparable(indptr: NDArray[np.int64], positions: NDArray[np.int64]) -> int:
    """The number of rows at these positions, from the first on, that can be compared with each other by their nonzeros."""
    lengths = indptr[positions + 1] - indptr[positions]
    return int(np.searchsorted(np.cumsum(lengths), MOST_NONZEROS, side="right"))


def representatives(rows: SparseRows, n: int) -> NDArray[np.int64]:
    """Positions of ``n`` rows that represent all of them best, shape (n,); of equal gains the first row is taken.

    Maximises the facility location ``Σ_i max_{j chosen} max(0, cos(x_i, x_j))`` greedily. Takes n_rows² numbers of memory.
    """
    similar = similarities(rows)
    covered: NDArray[np.float32] = np.zeros(rows.n_rows, np.float32)
    heap = [(-float(gain), place, 0) for place, gain in enumerate(similar.sum(axis=1, dtype=np.float64))]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < n:
        _, place, known = heap[0]
        if known == len(chosen):
            heapq.heappop(heap)
            chosen.append(place)
            np.maximum(covered, similar[place], out=covered)
        else:  # its gain was computed when fewer were chosen
            gain = float(np.maximum(similar[place] - covered, 0).sum(dtype=np.float64))
            heapq.heapreplace(heap, (-gain, place, len(chosen)))
    return np.array(chosen, np.int64)


def similarities(rows: SparseRows) -> NDArray[np.float32]:
    """``max(0, cos(x_i, x_j))``, shape (n_rows, n_rows); 0 where a row is empty."""
    matrix = _unit_rows(rows)
    if matrix.shape[0] * matrix.shape[1] <= _DENSE * matrix.nnz:
        dense = matrix.toarray()
        return np.asarray(np.maximum(dense @ dense.T, 0))
    transposed = matrix.T.tocsc()
    similar = np.empty((rows.n_rows, rows.n_rows), np.float32)
    for start in range(0, rows.n_rows, _BLOCK):
        similar[start : start + _BLOCK] = (matrix[start : start + _BLOCK] @ transposed).toarray()
    return np.maximum(similar, 0, out=similar)


def _unit_rows(rows: SparseRows) -> Any:
    """The rows as a SciPy matrix without empty columns, each of length 1 unless it is empty."""
    from scipy.sparse import csr_array  # imported at first use: it takes a second

    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    features, columns = np.unique(rows.indices[first:last], return_inverse=True)
    indptr = np.asarray(rows.indptr - first)
    values = rows.values[first:last].astype(np.float64)
    owners = np.repeat(np.arange(rows.n_rows), np.diff(indptr))
    # divided by the largest value first: squares of very small or large ones under- or overflow
    largest = np.zeros(rows.n_rows)
    np.maximum.at(largest, owners, np.abs(values))
    values /= np.where(largest > 0, largest, 1.0)[owners]
    norms = np.sqrt(np.bincount(owners, values**2, rows.n_rows))
    values /= np.where(norms > 0, norms, 1.0)[owners]
    return csr_array((values.astype(np.float32), columns.astype(np.int32), indptr), shape=(rows.n_rows, len(features)))
