"""Weights of terms: sparse rows are scaled to length 1, and whole numbers are weighed as the terms of a text are.

Sparse rows are bags of terms. Without a common length long documents outweigh short ones, and without the inverse
document frequency frequent terms outweigh all others (Salton and Buckley, 1988). A count ``t`` of a term that is in
``d`` of ``n`` documents has the weight of core.documents.text.tfidf, ``(1 + ln t) · (1 + ln((1 + n) / (1 + d)))``. So
counts of words are learned from as the texts are that they were counted in.

Counts that were divided by the length of their document, as by their sum or the root of the sum of their squares, are
whole multiples of the smallest value of the document. A document of words hardly lacks one that it has once, so these
multiples are taken for the counts.

Hashing gives half of the terms a negative sign, so that terms of one place cancel out (Weinberger et al., 2009). With
far more places than terms nothing cancels, and a place has one sign. Naive Bayes needs values that are not negative, so
signs are dropped there. Where many terms share a place, a weight keeps the sign of its count.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows, Pages, SparseRows, to_float32
from core.numerics.elementary import log
from core.progress import Checkpoint

_SLICE = 1 << 20
_ALIKE = 1e-3
"""spread of the squared lengths of rows, in units of the largest, up to which they are left as they are"""
_DENSE = 0.1
"""share of nonzeros from which on distances are meaningful: texts have far less"""
_MOST_RATIO = 4.0
"""participation ratio up to which few features outweigh all others together"""
_COLLISIONS = 0.1
"""share of the values that the rarer signs of all features have together, up to which signs are those of places"""
_NEARLY_ALL = 0.98
"""share of the values that must be multiples: the rounding of one long document decides for no other"""
EXACT, MOST_OFF = 1e-2, 0.25
"""share of a multiple by which it may be off a whole number, as values that were rounded to four digits are, and the
most that any may be"""


def distances_apply(n_rows: int, n_features: int, n_nonzeros: int) -> bool:
    """Whether distances between such rows are meaningful."""
    return n_nonzeros >= _DENSE * n_rows * n_features


def equally_long(squares: NDArray[np.float64]) -> bool:
    """Whether rows of these squared lengths, shape (n_rows,), are equally long; empty ones aside."""
    held = squares[squares > 0]
    return not len(held) or float(held.max() - held.min()) <= _ALIKE * float(held.max())


def outweighing(energies: NDArray[np.float64]) -> NDArray[np.int64]:
    """The features that outweigh the others, the largest first, as counts do beside shares: the fewest without which
    the participation ratio ``(Σ m)² / Σ m²`` of the sums m of the features' squares, shape (n_features,), is more than
    4; all where it always is at most that.
    """
    order = np.argsort(-energies, kind="stable")
    ascending = energies[order][::-1]
    totals, squares = np.cumsum(ascending)[::-1], np.cumsum(ascending**2)[::-1]  # from each feature on
    spread = np.flatnonzero(_MOST_RATIO * squares < totals**2)
    return order[: spread[0]] if len(spread) else order


@dataclass(frozen=True)
class TermWeights:
    """What the values of a document are multiplied by before it is scaled to length 1."""

    idf: NDArray[np.float64]
    """shape (n_seen,): inverse document frequency of each feature of the model; ones where values are no counts. Of
    numbers beside counts, which are no terms, what brings them to the root mean square of the largest term, below 0"""
    counts: bool
    """whether values are counts, of which logarithms are taken"""
    signed: bool = False
    """whether the signs of values are those of hashing, which are dropped"""
    divided: bool = False
    """whether counts were divided by the length of their document, so that they are multiples of its smallest value"""

    @property
    def in_words(self) -> str:
        """What becomes of the values, for the report."""
        signs, counts = " without the signs of hashing" * self.signed, "divided " * self.divided + "counts"
        values = f"{counts}{signs} weighed by TF-IDF" if self.counts else f"values as they came{signs}"
        numbers = ", numbers brought down to the largest term" if (self.idf < 0).any() else ""
        return f"{values}, each document at length 1{numbers}"

    def weighed(self, rows: SparseRows, positions: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """shape (n_nonzeros,): the weights of the values of rows, given the position of each among the features of the
        model; 0 where it is their number, that of all others. Rows without features of the model stay zeros.
        """
        held, owners = slice(int(rows.indptr[0]), int(rows.indptr[-1])), rows.owners
        values, seen = rows.values[held].astype(np.float64), positions < len(self.idf)
        if self.signed:
            values = np.abs(values)
        if self.divided:
            values = _multiples(values, owners, rows.n_rows)
        if self.counts:
            sizes = np.abs(values)
            # below 1, as no count is, the value itself goes on where the logarithm ends
            values = np.copysign(np.minimum(sizes, 1.0) + log(np.maximum(sizes, 1.0)), values)
        idf = np.where(seen, self.idf.take(positions, mode="clip"), 0.0) if len(self.idf) else np.zeros(len(values))
        values *= np.maximum(idf, 0.0)
        # summed in sequence, so that the processor has no say in it
        lengths = np.sqrt(np.bincount(owners, values * values, rows.n_rows))
        weights = (values / np.where(lengths > 0, lengths, 1.0)[owners]).astype(np.float32)
        return np.where(idf < 0, to_float32(-idf * rows.values[held]), weights)


def weigh(rows: SparseRows, checkpoint: Checkpoint) -> TermWeights | None:
    """Scale the rows to length 1, by TF-IDF where all values are counts, or were before they were divided by the length
    of their document; their values are overwritten.

    None, and the rows as they are, where few features outweigh all others, where all rows are equally long and have
    neither such counts nor signs of hashing, and where rows have many values, unless these are counts of a small
    vocabulary. Features that outweigh the others or have fractions are numbers where counts are most of the values, as
    of texts beside their length. ``checkpoint`` is called between slices of some million nonzeros.
    """
    if isinstance(rows, FullRows):
        return None
    found = _kind_of_values(rows, checkpoint)
    many = distances_apply(rows.n_rows, rows.n_features, rows.n_nonzeros)
    if not (found.declining if many else found.multiples or found.negative or not found.alike):
        return None
    energies, frequencies, positives, fractional = _features_of(rows, found.squares, checkpoint)
    loud = outweighing(energies)
    numbers = np.union1d(loud, np.flatnonzero(fractional)) if len(loud) or not found.multiples else loud
    beside = None
    if not many and 0 < 2 * int(frequencies[numbers].sum()) < rows.n_nonzeros:
        beside = _kind_of_values(rows, checkpoint, numbers)
    if beside is not None and beside.counts and not (beside.negative or beside.alike):
        terms = TermWeights(_idf_of(frequencies, rows.n_rows), counts=True)
        terms.idf[numbers] = -1.0
        terms.idf[numbers] = -_down_to_terms(rows, terms, numbers, checkpoint)
    else:
        hashed = found.negative and _are_halved(positives, frequencies)
        signed = hashed and _are_of_places(positives, frequencies)
        counts = found.multiples and (hashed or not found.negative)
        if len(loud) or not (counts or signed or not found.alike):
            return None
        idf = _idf_of(frequencies, rows.n_rows) if counts else np.ones(rows.n_features)
        terms = TermWeights(idf, counts, signed, divided=counts and not found.counts)
    pages = Pages(rows.values)
    for start, stop in rows.slices(_SLICE):
        held = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
        rows.values[held] = terms.weighed(rows.between(start, stop), rows.columns(held.start, held.stop))
        pages.release(held.start, held.stop)
        checkpoint()
    return terms


def _features_of(
    rows: SparseRows, squares: NDArray[np.float64], checkpoint: Checkpoint
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sums of squares of each feature, and numbers of its values: of all that are not 0, of those above 0, and of those
    that are no whole numbers. ``squares``, shape (n_rows,), are those of the lengths of the rows.
    """
    energies, counts = np.zeros(rows.n_features), np.zeros((3, rows.n_features), np.int64)
    for start, stop in rows.slices(_SLICE):
        columns, values = _part_of(rows, start, stop)
        # of rows at length 1: one document with a count of 10,000, as of an attached file, decides for no other
        lengths = np.where(squares > 0, squares, 1.0)[start:stop][rows.between(start, stop).owners]
        energies += np.bincount(columns, values * values / lengths, rows.n_features)
        for kind, own in enumerate((values != 0, values > 0, values != np.rint(values))):
            counts[kind] += np.bincount(columns[own], minlength=rows.n_features)
        checkpoint()
    return energies, *counts


def _down_to_terms(
    rows: SparseRows, terms: TermWeights, numbers: NDArray[np.int64], checkpoint: Checkpoint
) -> NDArray[np.float64]:
    """What brings each of the ``numbers`` beside counts to the root mean square of the largest term."""
    energies = np.zeros(rows.n_features)
    for start, stop in rows.slices(_SLICE):
        columns = rows.columns(int(rows.indptr[start]), int(rows.indptr[stop]))
        weights = terms.weighed(rows.between(start, stop), columns).astype(np.float64)
        energies += np.bincount(columns, weights * weights, rows.n_features)
        checkpoint()
    own = energies[numbers]
    return np.asarray(np.sqrt(np.delete(energies, numbers).max() / np.where(own > 0, own, 1.0)))


def _idf_of(frequencies: NDArray[np.int64], n_rows: int) -> NDArray[np.float64]:
    return log(np.asarray((1.0 + n_rows) / (1.0 + frequencies), np.float64)) + 1.0


class _Values(NamedTuple):
    """The kind of values that rows have."""

    counts: bool
    """whether there are values and all are whole numbers"""
    multiples: bool
    """whether they are, or nearly all that are larger than the smallest one of their row are whole multiples of it"""
    negative: bool
    """whether some value is below zero"""
    declining: bool
    """whether all are counts of which 1 is more frequent than 2, 2 than 3, and others rarer than these, as of words;
    brightness of pixels and answers on a scale are not"""
    squares: NDArray[np.float64]
    """shape (n_rows,): squared lengths of the rows"""

    @property
    def alike(self) -> bool:
        """Whether all rows that are not empty are equally long."""
        return equally_long(self.squares)


def _kind_of_values(rows: SparseRows, checkpoint: Checkpoint, aside: NDArray[np.int64] | None = None) -> _Values:
    """The kind of values that rows have in all features but those that are left ``aside``."""
    whole, negative, larger, multiples = True, False, 0, 0
    squares, numbers = np.zeros(rows.n_rows), np.zeros(4, np.int64)
    for start, stop in rows.slices(_SLICE):
        columns, values = _part_of(rows, start, stop)
        if aside is not None:
            values[np.isin(columns, aside)] = 0.0
        owners = rows.between(start, stop).owners
        whole = whole and bool((values == np.rint(values)).all())
        sizes = np.abs(_multiples(values, owners, stop - start))
        larger += int(np.count_nonzero(sizes > 1))
        multiples += int(np.count_nonzero((sizes > 1) & (sizes == np.rint(sizes))))
        negative = negative or bool((values < 0).any())
        numbers += [int(np.count_nonzero(values == number)) for number in (0, 1, 2, 3)]
        squares[start:stop] = np.bincount(owners, values * values, stop - start)
        checkpoint()
    zeros, ones, twos, threes = numbers.tolist()
    some, small = bool(squares.any()), ones + twos + threes
    declining = whole and some and not negative and ones > twos > threes and 2 * small > rows.n_nonzeros - zeros
    divided = multiples >= _NEARLY_ALL * larger
    return _Values(whole and some, (whole or divided) and some, negative, declining, squares)


def _multiples(values: NDArray[np.float64], owners: NDArray[np.integer[Any]], n_rows: int) -> NDArray[np.float64]:
    """Values as multiples of the size of the smallest one of their row that is not 0; nearly whole ones are whole."""
    sizes, smallest = np.abs(values), np.full(n_rows, np.inf)
    np.minimum.at(smallest, owners, np.where(sizes > 0, sizes, np.inf))
    multiples = values / smallest[owners]
    whole = np.rint(multiples)
    near = np.abs(multiples - whole) <= np.minimum(EXACT * np.abs(whole), MOST_OFF)
    return np.asarray(np.where(near, whole, multiples))


def _are_halved(positives: NDArray[np.int64], frequencies: NDArray[np.int64]) -> bool:
    """Whether about half of the features have each sign, given the numbers of positive values of each feature and of
    all, shape (n_features,).
    """
    below = int(np.count_nonzero(2 * positives < frequencies))
    return len(frequencies) <= 4 * below <= 3 * len(frequencies)


def _are_of_places(positives: NDArray[np.int64], frequencies: NDArray[np.int64]) -> bool:
    """Whether nearly all values of a feature have one sign; arguments as in ``_are_halved``."""
    rarer = np.minimum(positives, frequencies - positives)
    return int(rarer.sum()) <= _COLLISIONS * int(frequencies.sum())


def _part_of(rows: SparseRows, start: int, stop: int) -> tuple[NDArray[np.uint32], NDArray[np.float64]]:
    """The columns and values of some rows."""
    held = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
    return rows.columns(held.start, held.stop), rows.values[held].astype(np.float64)
