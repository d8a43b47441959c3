"""Runs: counts of documents by word or by term, sorted by hash so that many texts merge a bucket at a time.

A run counts some texts. Counts are whole numbers: their sums depend neither on the cuts of the texts nor on the order
of merging.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows, spans
from core.documents.text.batches import SPAN_BYTES, SPAN_ROWS, TextCheckpoint
from core.documents.text.counts import Counts, Frequencies, counted
from core.documents.text.words import Words
from core.threads import Threads

Held = Callable[[int], None]
"""Callback between slices of work: takes the bytes of memory that are held; what it raises ends the work."""
WORD_BYTES, TERM_BYTES = 120, 48
"""bytes that a word and a term of a bucket take while it is merged"""
_SECOND = np.uint64(32)
_NUMBERS = 1 << 64


class WordRun(NamedTuple):
    """Words of some texts."""

    hashes: NDArray[np.uint32]
    """shape (n,), ascending"""
    indptr: NDArray[np.int64]
    """shape (n + 1,): where each word begins and ends in the letters"""
    letters: NDArray[np.uint8]
    counts: NDArray[np.int32]
    """shape (n,): numbers of documents"""

    def between(self, start: int, stop: int) -> Self:
        """Words ``start`` to ``stop`` as a view."""
        return self._replace(
            hashes=self.hashes[start:stop], indptr=self.indptr[start : stop + 1], counts=self.counts[start:stop]
        )


class TermRun(NamedTuple):
    """Terms of some texts, each as its product with an odd multiplier modulo 2⁶⁴, which no other has."""

    hashes: NDArray[np.uint64]
    """shape (n,), ascending"""
    counts: NDArray[np.int32]
    """shape (n,): numbers of documents"""

    def between(self, start: int, stop: int) -> Self:
        """Terms ``start`` to ``stop`` as a view."""
        return self._replace(hashes=self.hashes[start:stop], counts=self.counts[start:stop])


Run = TypeVar("Run", WordRun, TermRun)


class WordCounts(NamedTuple):
    """Words of a bucket that occur in enough documents."""

    words: TextRows
    counts: NDArray[np.int32]
    """shape (n_words,): numbers of documents"""
    n_distinct: int
    """number of all words of the bucket"""


def word_runs(
    texts: TextRows, multiplier: np.uint64, most_bytes: int, team: Threads, report: TextCheckpoint
) -> Iterator[WordRun]:
    """All words of the texts, in runs that each took about so much memory; their hashes are by the ``multiplier``."""
    words, counts = Words(multiplier), Counts(False)
    for stop, done in counted(texts, words, counts, team, lambda share: report(share, words.nbytes + counts.nbytes)):
        if stop == texts.n_rows or words.nbytes + counts.nbytes > most_bytes:
            tags, found = words.tags, words.texts
            for keys, frequencies in counts.often(1):
                if len(keys):
                    yield _word_run(tags, found, keys, frequencies)
                report(done, words.nbytes + counts.nbytes)
            words.clear()


def _word_run(
    tags: NDArray[np.uint32], words: TextRows, keys: NDArray[np.uint64], counts: NDArray[np.int32]
) -> WordRun:
    numbers = (keys >> _SECOND).astype(np.int64)
    order = np.argsort(tags[numbers], kind="stable")
    chosen = numbers[order]
    taken = words.taken(chosen)
    return WordRun(tags[chosen], taken.indptr, taken.data, counts[order])


def term_runs(
    texts: TextRows, words: Words, multiplier: np.uint64, most_bytes: int, team: Threads, report: TextCheckpoint
) -> Iterator[TermRun]:
    """The terms of these words in the texts, pairs too, in runs that each took about so much memory."""
    counts = Counts(True)
    for stop, done in counted(
        texts, words, counts, team, lambda share: report(share, words.nbytes + counts.nbytes), known=True
    ):
        if stop == texts.n_rows or counts.nbytes > most_bytes:
            for keys, frequencies in counts.often(1):
                if len(keys):
                    yield _term_run(keys * multiplier, frequencies)
                report(done, words.nbytes + counts.nbytes)


def _term_run(hashes: NDArray[np.uint64], counts: NDArray[np.int32]) -> TermRun:
    order = np.argsort(hashes, kind="stable")
    return TermRun(hashes[order], counts[order])


def in_bucket(run: Run, bucket: int, n_buckets: int) -> Run:
    """The entries of a run in one of so many buckets of hashes, as a view."""
    values, kind = 1 << 8 * run.hashes.itemsize, run.hashes.dtype.type
    first, last = values * bucket // n_buckets, values * (bucket + 1) // n_buckets - 1
    return run.between(
        int(np.searchsorted(run.hashes, kind(first))), int(np.searchsorted(run.hashes, kind(last), "right"))
    )


def merged_words(runs: Sequence[WordRun], least: int, note: Held) -> WordCounts:
    """The words of all runs of a bucket that occur in at least so many documents."""
    words, totals = Words(), np.zeros(1, np.int64)
    for run in runs:
        texts = TextRows(run.indptr, run.letters)
        for start, stop in spans(run.indptr, SPAN_ROWS, SPAN_BYTES):
            scan = words.scan(texts.between(start, stop))
            words.number(scan)
            if words.count > len(totals):
                totals = np.concatenate([totals, np.zeros(words.count, np.int64)])
            totals[scan.words] += run.counts[start:stop]  # words of a run are all different
            note(words.nbytes + totals.nbytes)
    often = np.flatnonzero(totals[: words.count] >= least)
    return WordCounts(words.texts.taken(often), totals[often].astype(np.int32), words.count)


def merged_terms(runs: Sequence[TermRun], multiplier: np.uint64, least: int, most: int) -> Frequencies:
    """The first ``most`` terms of a bucket of all runs, among the terms in at least ``least`` documents."""
    hashes, counts = np.concatenate([run.hashes for run in runs]), np.concatenate([run.counts for run in runs])
    order = np.argsort(hashes, kind="stable")
    hashes, counts = hashes[order], counts[order]
    starts = np.flatnonzero(np.concatenate([[True], hashes[1:] != hashes[:-1]])[: len(hashes)])
    totals = np.add.reduceat(counts, starts) if len(starts) else counts
    often = totals >= least
    inverse = np.uint64(pow(int(multiplier), -1, _NUMBERS))
    return most_frequent(hashes[starts[often]] * inverse, totals[often], most)


def most_frequent(keys: NDArray[np.uint64], counts: NDArray[np.int32], most: int) -> Frequencies:
    """The ``most`` of these terms that are in most documents, of equals the first."""
    if len(keys) <= most:
        return keys, counts
    order = np.lexsort((keys, -counts))[:most]
    return keys[order], counts[order]
