"""Fits TF-IDF: finds the terms of a collection of texts, exactly, in one pass, in memory that grows with distinct terms alone.

The texts are read in batches. Threads scan spans of a batch side by side, and look up the words that have numbers already. Then one thread gives
numbers to new words, in the order of the texts. At last threads count the documents of terms, each those of one share of all words at a time.
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.text.batches import TextCheckpoint, batches, threads_for
from core.documents.text.term_loops import count_terms, move_terms
from core.documents.text.tfidf import TextTerms, key_of, unspaced, words_in
from core.documents.text.words import Scan, Words, drawn_multiplier
from core.documents.vocabulary import UNKNOWN
from core.errors import InvalidDocuments
from core.numerics.elementary import log
from core.options.text import TextOptions
from core.progress import Checkpoint

_SHARES = 8
"""shares of the terms, a power of two: tables grow one after another, so that not all of them are held twice"""
_TABLE, _LOAD = 1 << 10, 0.7
"""places of a table at first, and the share of its places that may be taken"""
SPACES = "put spaces between the words, where now whole clauses count as one, or send named features"


def fit_terms(texts: TextRows, options: TextOptions, report: TextCheckpoint, threads: int | None = None) -> TextTerms:
    """The terms that occur in ``min_documents`` of the texts, at most ``max_terms``: those in most texts, of equals the first in order.

    ``threads``: how many; None: one a core. Raises InvalidDocuments if no term does.
    """
    done, n_bytes = 0.0, max(1, int(texts.indptr[-1] - texts.indptr[0]))

    def checkpoint() -> None:
        report(done, words.nbytes + counts.nbytes)

    words, counts, team = Words(), _Counts(options.ngrams > 1), threads_for(texts, threads)
    try:
        for batch in batches(texts, team.count):
            scans: dict[int, Scan] = {}

            def scan(start: int, stop: int, scans: dict[int, Scan] = scans) -> None:
                scans[start] = words.scan(texts.between(start, stop))

            team.side_by_side([partial(scan, *span) for span in batch], checkpoint)
            for start, _ in batch:
                words.number(scans[start])
            team.side_by_side([partial(counts.add, share, scans) for share in range(_SHARES)], checkpoint)
            done = float(texts.indptr[batch[-1][1]] - texts.indptr[0]) / n_bytes
            checkpoint()
    finally:
        team.close()
    n_terms, (keys, frequencies) = counts.n_terms, counts.often(options.min_documents, checkpoint)
    if not len(keys):
        raise _no_term_error(n_terms, texts, options)
    return _selected_terms(words, keys, frequencies, texts.n_rows, options, checkpoint)


def _no_term_error(n_terms: int, texts: TextRows, options: TextOptions) -> InvalidDocuments:
    if not n_terms:
        return InvalidDocuments(f"none of the {texts.n_rows} documents has a word: two or more letters or digits in a row")
    remedy = SPACES if unspaced(texts) else "send more text, or lower text.min_documents"
    return InvalidDocuments(f"no word occurs in {options.min_documents} or more of the {texts.n_rows} documents; {remedy}")


class _Share:
    """Document frequencies of a share of all terms."""

    def __init__(self, number: int) -> None:
        self.number, self.n_terms = number, 0
        self._multiplier = drawn_multiplier()
        self._table = np.zeros((_TABLE, 2), np.uint64)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._table.nbytes

    def add(self, scan: Scan, first: int, pairs: bool) -> None:
        """Count the terms of the texts from number ``first`` on."""
        done = 0
        while True:
            most = int(_LOAD * len(self._table))
            found = count_terms(*scan[:2], first, done, (self.number, _SHARES), pairs, self._table, self._multiplier, self.n_terms, most)
            done, self.n_terms = found
            if done == len(scan.words):
                return
            larger = np.zeros((len(self._table) * 3 // 2, 2), np.uint64)
            move_terms(self._table, larger, self._multiplier)
            self._table = larger

    def often(self, least: int) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The terms in at least so many documents, and in how many each is. The table is empty then."""
        frequencies = (self._table[:, 1] >> np.uint64(32)).astype(np.int32)
        often = frequencies >= least
        found = self._table[often, 0], frequencies[often]
        self._table = np.zeros((0, 2), np.uint64)
        return found


class _Counts:
    """Document frequencies of all terms, in shares that threads work on side by side."""

    def __init__(self, pairs: bool) -> None:
        self._pairs = pairs
        self._shares = [_Share(number) for number in range(_SHARES)]
        self._selected = 0

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return self._selected + sum(share.nbytes for share in self._shares)

    @property
    def n_terms(self) -> int:
        """Number of distinct terms."""
        return sum(share.n_terms for share in self._shares)

    def add(self, share: int, scans: Mapping[int, Scan]) -> None:
        """Count the terms of a share in some texts, by the numbers of the first of them, which ascend."""
        for first in sorted(scans):
            self._shares[share].add(scans[first], first, self._pairs)

    def often(self, least: int, checkpoint: Checkpoint) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The terms in at least so many documents, and in how many each is. Nothing else is left of the counts then."""
        found = []
        for share in self._shares:
            found.append(share.often(least))
            self._selected += sum(array.nbytes for array in found[-1])
            checkpoint()
        return np.concatenate([keys for keys, _ in found]), np.concatenate([frequencies for _, frequencies in found])


def _selected_terms(
    words: Words, keys: NDArray[np.uint64], frequencies: NDArray[np.int32], n_rows: int, options: TextOptions, checkpoint: Checkpoint
) -> TextTerms:
    """The most frequent of the terms, in their order. ``keys`` number words in order of first sight."""
    used, keys = _renumbered(words.text, words.count, keys, checkpoint)
    order = np.argsort(keys, kind="stable")
    keys, frequencies = keys[order], frequencies[order]
    checkpoint()
    if len(keys) > options.max_terms:
        kept = np.sort(np.argsort(-frequencies, kind="stable")[: options.max_terms])
        frequencies = frequencies[kept]
        checkpoint()
        used, keys = _renumbered(used.__getitem__, len(used), keys[kept], checkpoint)
    return TextTerms(used, keys, log(np.asarray((1.0 + n_rows) / (1.0 + frequencies), np.float64)) + 1.0, options.ngrams)


def _renumbered(text: Callable[[int], str], n_words: int, keys: NDArray[np.uint64], checkpoint: Checkpoint) -> tuple[list[str], NDArray[np.uint64]]:
    """The words of these terms, sorted, and the terms by the places of their words there. ``text`` tells one of ``n_words`` words by its number."""
    first, second = words_in(keys)
    used = np.zeros(n_words + 1, bool)
    used[first] = used[second] = True
    # the last place is that of no word
    used[-1] = False
    numbers = np.flatnonzero(used)
    checkpoint()
    found = list(map(text, numbers.tolist()))
    checkpoint()
    order = sorted(range(len(found)), key=found.__getitem__)
    checkpoint()
    places = np.full(n_words + 1, UNKNOWN)
    places[numbers[order]] = np.arange(len(order))
    renumbered = [found[place] for place in order], key_of(places[first], places[second])
    checkpoint()
    return renumbered
