"""Weights of terms: sparse rows are scaled to length 1, and whole numbers are weighed as the terms of a text are.

Sparse rows are bags of terms. Without a common length long documents outweigh short ones, and without the inverse
document frequency frequent terms outweigh all others (Salton and Buckley, 1988). A count ``t`` of a term that is in
``d`` of ``n`` documents has the weight of core.documents.text.tfidf, ``(1 + ln t) · (1 + ln((1 + n) / (1 + d)))``. So
counts of words are learned from as the texts are that they were counted in.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows, Pages, SparseRows
from core.numerics.elementary import log
from core.progress import Checkpoint

_SLICE = 1 << 21
_ALIKE = 1e-3
"""spread of the squared lengths of rows, in units of the largest, up to which they are left as they are"""
_DENSE = 0.1
"""share of nonzeros from which on distances are meaningful: texts have far less"""
_MOST_RATIO = 4.0
"""participation ratio up to which few features outweigh all others together"""


def distances_apply(n_rows: int, n_features: int, n_nonzeros: int) -> bool:
    """Whether distances between such rows are meaningful."""
    return n_nonzeros >= _DENSE * n_rows * n_features


def few_outweigh(energies: NDArray[np.float64]) -> bool:
    """Whether few features carry nearly all squares, as counts do beside shares: the participation ratio
    ``(Σ m)² / Σ m²`` of the sums m of the features' squares, shape (n_features,), is at most 4.
    """
    total = float(energies.sum())
    return total > 0 and float(((energies / total) ** 2).sum()) >= 1 / _MOST_RATIO


@dataclass(frozen=True)
class TermWeights:
    """What the values of a document are multiplied by before it is scaled to length 1."""

    idf: NDArray[np.float64]
    """shape (n_seen,): inverse document frequency of each feature of the model; ones where values are no counts"""
    counts: bool
    """whether values are counts, of which logarithms are taken"""

    @property
    def in_words(self) -> str:
        """What becomes of the values, for the report."""
        return f"{'counts weighed by TF-IDF' if self.counts else 'values as they came'}, each document at length 1"

    def weighed(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """shape (n_nonzeros,): the weights of the values of rows, given the position of each among the features of the
        model; 0 where it is their number, that of all others. Rows without features of the model stay zeros.
        """
        held = slice(int(rows.indptr[0]), int(rows.indptr[-1]))
        values, seen = rows.values[held].astype(np.float64), positions < len(self.idf)
        if self.counts:
            # below 1, as no count is, the value itself goes on where the logarithm ends
            values = np.minimum(values, 1.0) + log(np.maximum(values, 1.0))
        values *= np.where(seen, self.idf.take(positions, mode="clip"), 0.0) if len(self.idf) else 0.0
        # summed in sequence, so that the processor has no say in it
        lengths = np.sqrt(np.bincount(rows.owners, values * values, rows.n_rows))
        return (values / np.where(lengths > 0, lengths, 1.0)[rows.owners]).astype(np.float32)


def weigh(rows: SparseRows, checkpoint: Checkpoint) -> TermWeights | None:
    """Scale the rows to length 1, by TF-IDF where all values are counts; their values are overwritten.

    None, and the rows as they are, where few features outweigh all others, where all rows are equally long, and where
    rows have many values, unless these are counts of a small vocabulary. ``checkpoint`` is called between slices of
    some million nonzeros.
    """
    if isinstance(rows, FullRows):
        return None
    found = _kind_of_values(rows, checkpoint)
    many = distances_apply(rows.n_rows, rows.n_features, rows.n_nonzeros)
    if not (found.declining if many else found.counts or not found.alike):
        return None
    energies, frequencies = np.zeros(rows.n_features), np.zeros(rows.n_features, np.int64)
    for start, stop in rows.slices(_SLICE):
        columns, values = _part_of(rows, start, stop)
        energies += np.bincount(columns, values * values, rows.n_features)
        frequencies += np.bincount(columns[values != 0], minlength=rows.n_features)
        checkpoint()
    if few_outweigh(energies):
        return None
    idf = np.ones(rows.n_features)
    if found.counts:
        idf = log(np.asarray((1.0 + rows.n_rows) / (1.0 + frequencies), np.float64)) + 1.0
    terms, pages = TermWeights(idf, found.counts), Pages(rows.values)
    for start, stop in rows.slices(_SLICE):
        held = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
        rows.values[held] = terms.weighed(rows.between(start, stop), rows.columns(held.start, held.stop))
        pages.release(held.start, held.stop)
        checkpoint()
    return terms


class _Values(NamedTuple):
    """The kind of values that rows have."""

    counts: bool
    """whether there are values and all are counts"""
    declining: bool
    """whether all are counts of which 1 is more frequent than 2, 2 than 3, and others rarer than these, as of words;
    brightness of pixels and answers on a scale are not"""
    alike: bool
    """whether all rows that are not empty are equally long"""


def _kind_of_values(rows: SparseRows, checkpoint: Checkpoint) -> _Values:
    whole, shortest, longest, numbers = True, np.inf, 0.0, np.zeros(4, np.int64)
    for start, stop in rows.slices(_SLICE):
        _, values = _part_of(rows, start, stop)
        whole = whole and bool((values >= 0).all() and (values == np.rint(values)).all())
        numbers += [int(np.count_nonzero(values == number)) for number in (0, 1, 2, 3)]
        squares = np.bincount(rows.between(start, stop).owners, values * values, stop - start).astype(np.float64)
        squares = squares[squares > 0]
        shortest = min(shortest, float(squares.min(initial=np.inf)))
        longest = max(longest, float(squares.max(initial=0.0)))
        checkpoint()
    zeros, ones, twos, threes = numbers.tolist()
    counts, small = whole and longest > 0, ones + twos + threes
    declining = counts and ones > twos > threes and 2 * small > rows.n_nonzeros - zeros
    return _Values(counts, declining, longest - shortest <= _ALIKE * longest)


def _part_of(rows: SparseRows, start: int, stop: int) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """The columns and values of some rows."""
    held = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
    return rows.columns(held.start, held.stop), rows.values[held].astype(np.float64)
