"""Active learning: which unlabeled documents to label next. Uncertainty sampling by margins, balanced over the classes
that are predicted, and representatives of the uncertain ones.

Conventions: positions are those of documents in their dataset. A margin is the difference of a document's two likeliest
classes, in probability where that is known, else in score. Sources: Settles, Active learning literature survey, 2009
(margins); Neyman, On the two different aspects of the representative method, 1934 (shares of labels); Nemhauser, Wolsey
& Fisher, An analysis of approximations for maximizing submodular set functions, 1978 (the greedy method comes within
1 − 1/e of the best, and within 1/2 where each class has a bound: part II); Minoux, Accelerated greedy algorithms for
maximizing submodular set functions, 1978 (gains only fall, so that most need not be computed again).
"""

import heapq
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows, unit_rows
from core.one_vs_rest import labels_of

POOL = 3
"""factor on the number of documents requested: representatives are selected among so many of least margin"""
MOST_NONZEROS = 1 << 23
"""most nonzeros of the documents that are compared with each other, or bytes of their text, which has fewer nonzeros"""
LABELS_A_CLASS = 3
"""labels left out, for each class of a model, from which on it chooses documents"""
_LEAST_MIXED = 4
_ROUNDING = 1e-9
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
    """By ``values`` of shape (n_rows, n_classes), larger for likelier classes; or of one column, positive for the
    second of two classes.
    """
    first = labels_of(values)
    if values.shape[1] == 1:
        return TopTwo(first, 1 - first, np.abs(values[:, 0]))
    everyone, others = np.arange(len(values)), values.copy()
    others[everyone, first] = -np.inf
    second = np.argmax(others, axis=1)
    return TopTwo(first, second, values[everyone, first] - values[everyone, second])


def least_certain(probabilities: NDArray[np.float64]) -> TopTwo:
    """The two labels of each document of which it is least certain whether they apply, by ``probabilities`` of shape
    (n_rows, n_labels) of several labels. The margin is less the more labels are uncertain: it is the negative number of
    labels that are expected to be wrong.
    """
    doubts = np.minimum(probabilities, 1 - probabilities)
    first = np.asarray(doubts.argmax(axis=1), np.intp)
    everyone, others = np.arange(len(doubts)), doubts.copy()
    others[everyone, first] = -1.0
    return TopTwo(first, np.asarray(others.argmax(axis=1), np.intp), -doubts.sum(axis=1))


class SmallestMargins:
    """The documents of least margin among any number that are added; holds no more than ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.positions: NDArray[np.int64] = np.zeros(0, np.int64)
        """positions by ascending margin, of equals the first"""
        self.margins: Margins = np.zeros(0)
        self.total = 0.0
        """sum of the margins of all documents that were added"""

    def add(self, positions: NDArray[np.int64], margins: Margins) -> None:
        """Add documents, shape (n_rows,) each."""
        self.total += float(margins.sum())
        if len(self.margins) == self._most:
            near = margins <= self.margins[-1]
            positions, margins = positions[near], margins[near]
        positions, margins = np.append(self.positions, positions), np.append(self.margins, margins)
        order = np.lexsort((positions, margins))[: self._most]
        self.positions, self.margins = positions[order], margins[order]


class Balanced(NamedTuple):
    """Documents of little margin, ordered so that every beginning has its share of each predicted class."""

    positions: NDArray[np.int64]
    """shape (n,)"""
    classes: NDArray[np.intp]
    """shape (n,): the class that each is predicted"""

    def taken(self, n: int) -> "Balanced":
        """The first ``n`` of them."""
        return Balanced(self.positions[:n], self.classes[:n])


class BalancedMargins:
    """The documents of least margin of each predicted class; holds no more than ``most`` of a class.

    Classes have even shares. Of ``several`` labels, with the margins of ``least_certain``, the share of a label is in
    proportion to the square root of how many labels are expected to be wrong where it is predicted. If these errors
    fall as one divided by the documents that are labeled, such shares leave the fewest (Neyman, 1934).
    """

    def __init__(self, most: int, *, several: bool = False) -> None:
        self._most, self._several = most, several
        self._pools: dict[int, SmallestMargins] = {}

    def add(self, positions: NDArray[np.int64], first: NDArray[np.signedinteger], margins: Margins) -> None:
        """Add documents, shape (n_rows,) each, with their likeliest classes."""
        for predicted in np.unique(first).tolist():
            own = first == predicted
            self._pools.setdefault(predicted, SmallestMargins(self._most)).add(positions[own], margins[own])

    @property
    def balanced(self) -> Balanced:
        """At most ``most`` documents: of even shares the least certain of each class, by their margins, then the second
        of each class, and so on.
        """
        pools = [(predicted, pool) for predicted, pool in sorted(self._pools.items())]
        shares = [math.sqrt(max(_ROUNDING, -pool.total)) if self._several else 1.0 for _, pool in pools]
        positions = np.concatenate([np.zeros(0, np.int64), *(pool.positions for _, pool in pools)])
        margins = np.concatenate([np.zeros(0), *(pool.margins for _, pool in pools)])
        turns = [(np.arange(len(pool.positions)) + 0.5) / share for (_, pool), share in zip(pools, shares, strict=True)]
        classes = np.repeat([predicted for predicted, _ in pools], [len(pool.positions) for _, pool in pools]).astype(
            np.intp
        )
        order = np.lexsort((positions, margins, np.concatenate([np.zeros(0), *turns])))[: self._most]
        return Balanced(positions[order], classes[order])


def has_few_labels(n_left_out: int, n_classes: int) -> bool:
    """Whether a model has too few labels to choose documents, by how many were left out to see whether it is right.

    Of twenty classes, each with one label or two, it is unsure of nearly all documents. What it chose would teach no
    more of the classes than random documents do, and nothing of how common they are.
    """
    return n_left_out < LABELS_A_CLASS * n_classes


def random_positions(unlabeled: NDArray[np.int64], n: int, share: float, seed: int) -> NDArray[np.int64]:
    """Those of ``n`` documents that are drawn at random from the positions ``unlabeled``: about this ``share`` of them,
    at least one of four or more unless it is 0.

    Every round of labels draws anew, since fewer documents are unlabeled then. The same draw would come from the same
    places of the dataset again, and where the documents lie by class have the same classes in each round: together no
    random sample.
    """
    # a share such as 0.29 of 100 is a little less in binary
    count = max(math.floor(n * share + _ROUNDING), int(share > 0 and n >= _LEAST_MIXED))
    return np.random.default_rng([seed, len(unlabeled)]).choice(unlabeled, count, replace=False)


def interleaved(random: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Both in one order, shape (n_random + n_chosen,), in which the random ones are spread evenly: each beginning has
    its share of them.
    """
    n, count = len(random) + len(chosen), max(1, len(random))
    # the first ⌈i n / count⌉ documents have i random ones
    places = -(-np.arange(1, len(random) + 1) * n // count) - 1
    mixed = np.empty(n, np.int64)
    mixed[places] = random
    mixed[np.setdiff1d(np.arange(n), places)] = chosen
    return mixed


def comparable(indptr: NDArray[np.int64], positions: NDArray[np.int64]) -> int:
    """The number of rows at these positions, from the first on, that can be compared with each other by their
    nonzeros."""
    lengths = indptr[positions + 1] - indptr[positions]
    return int(np.searchsorted(np.cumsum(lengths), MOST_NONZEROS, side="right"))


def representatives(rows: SparseRows, n: int, classes: NDArray[np.intp] | None = None) -> NDArray[np.int64]:
    """Positions of ``n`` rows that represent all of them best, shape (n,); of equal gains the first row is taken.

    Maximises the facility location ``Σ_i max_{j chosen} max(0, cos(x_i, x_j))`` greedily. With ``classes``, shape
    (n_rows,), it takes as many of each class as the first ``n`` rows have. Takes n_rows² numbers of memory.
    """
    left = None if classes is None else np.bincount(classes[:n], minlength=int(classes.max(initial=0)) + 1)
    similar = similarities(rows)
    covered: NDArray[np.float32] = np.zeros(rows.n_rows, np.float32)
    heap = [(-float(gain), place, 0) for place, gain in enumerate(similar.sum(axis=1, dtype=np.float64))]
    heapq.heapify(heap)
    chosen: list[int] = []
    while len(chosen) < n:
        _, place, known = heap[0]
        if left is not None and classes is not None and not left[classes[place]]:
            heapq.heappop(heap)
        elif known == len(chosen):
            heapq.heappop(heap)
            chosen.append(place)
            np.maximum(covered, similar[place], out=covered)
            if left is not None and classes is not None:
                left[classes[place]] -= 1
        else:  # its gain was computed when fewer were chosen
            gain = float(np.maximum(similar[place] - covered, 0).sum(dtype=np.float64))
            heapq.heapreplace(heap, (-gain, place, len(chosen)))
    return np.array(chosen, np.int64)


def similarities(rows: SparseRows) -> NDArray[np.float32]:
    """``max(0, cos(x_i, x_j))``, shape (n_rows, n_rows); 0 where a row is empty."""
    matrix = _unit_matrix(rows)
    if matrix.shape[0] * matrix.shape[1] <= _DENSE * matrix.nnz:
        dense = matrix.toarray()
        return np.asarray(np.maximum(dense @ dense.T, 0))
    transposed = matrix.T.tocsc()
    similar = np.empty((rows.n_rows, rows.n_rows), np.float32)
    for start in range(0, rows.n_rows, _BLOCK):
        similar[start : start + _BLOCK] = (matrix[start : start + _BLOCK] @ transposed).toarray()
    return np.maximum(similar, 0, out=similar)


def _unit_matrix(rows: SparseRows) -> Any:
    """The rows as a SciPy matrix without empty columns, each of length 1 unless it is empty."""
    from scipy.sparse import csr_array  # imported at first use: it takes a second

    unit = unit_rows(rows)
    features, columns = np.unique(unit.indices, return_inverse=True)
    return csr_array((unit.values, columns.astype(np.int32), unit.indptr), shape=(rows.n_rows, len(features)))
