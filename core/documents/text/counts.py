"""Counts of documents: of the words and pairs of some texts, exactly, in tables that threads work on side by side.

Counts of texts with more terms than memory holds lie in a space as runs, and are merged by buckets. A run has the
counts of documents of some texts, by word or by term, sorted by hash. Counts are whole numbers: their sums depend
neither on the cuts of the texts nor on the order of merging.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows, spans
from core.documents.rows import Pages, Space
from core.documents.text.batches import SPAN_BYTES, SPAN_ROWS, TextCheckpoint, batches, threads_for
from core.documents.text.term_loops import count_terms, move_terms
from core.documents.text.words import Scan, Words, drawn_multiplier
from core.progress import Span
from core.threads import Threads

SHARES = 8
"""shares of the terms, a power of two: tables grow one after another, so that not all of them are held twice"""
_TABLE, _LOAD = 1 << 10, 0.7
"""places of a table at first, and the share of its places that may be taken"""


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
            found = count_terms(
                *scan[:2], first, done, (self.number, SHARES), pairs, self._table, self._multiplier, self.n_terms, most
            )
            done, self.n_terms = found
            if done == len(scan.words):
                return
            larger = np.zeros((len(self._table) * 3 // 2, 2), np.uint64)
            move_terms(self._table, larger, self._multiplier)
            self._table = larger

    def often(self, least: int) -> "Frequencies":
        """The terms in at least so many documents, and in how many each is. The table is empty then."""
        frequencies = (self._table[:, 1] >> np.uint64(32)).astype(np.int32)
        often = frequencies >= least
        found = self._table[often, 0], frequencies[often]
        self._table, self.n_terms = np.zeros((_TABLE, 2), np.uint64), 0
        return found


Frequencies = tuple[NDArray[np.uint64], NDArray[np.int32]]
"""terms, and in how many documents each is"""


class Counts:
    """Document frequencies of all terms, in shares that threads work on side by side."""

    def __init__(self, pairs: bool) -> None:
        self._pairs = pairs
        self._shares = [_Share(number) for number in range(SHARES)]

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(share.nbytes for share in self._shares)

    @property
    def n_terms(self) -> int:
        """Number of distinct terms."""
        return sum(share.n_terms for share in self._shares)

    def add(self, share: int, scans: Mapping[int, Scan]) -> None:
        """Count the terms of a share in some texts, by the numbers of the first of them, which ascend."""
        for first in sorted(scans):
            self._shares[share].add(scans[first], first, self._pairs)

    def often(self, least: int) -> Iterator[Frequencies]:
        """The terms in at least so many documents, a share at a time; each share is emptied."""
        return (share.often(least) for share in self._shares)


def counted(
    texts: TextRows, words: Words, counts: Counts, team: Threads, note: Callable[[float], None], *, known: bool = False
) -> Iterator[tuple[int, float]]:
    """Count the terms of texts, a batch at a time; yields how many texts are done, and the share that they are. New
    words get numbers, in order.

    ``note`` is called between slices of work with the share that is done. ``known``: no word gets one, and terms of new
    words are not counted.
    """
    done, first, n_bytes = 0.0, int(texts.indptr[0]), max(1, int(texts.indptr[-1] - texts.indptr[0]))
    for batch in batches(texts, team.count):
        checkpoint, scans = partial(note, done), dict[int, Scan]()

        def scan(start: int, stop: int, scans: dict[int, Scan] = scans) -> None:
            scans[start] = words.scan(texts.between(start, stop), keep_unknown=not known)

        team.side_by_side([partial(scan, *span) for span in batch], checkpoint)
        if not known:
            for start, _ in batch:
                words.number(scans[start])
        team.side_by_side([partial(counts.add, share, scans) for share in range(SHARES)], checkpoint)
        stop = batch[-1][1]
        done = (int(texts.indptr[stop]) - first) / n_bytes
        note(done)
        yield stop, done


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
                    hashes = keys * multiplier
                    order = np.argsort(hashes, kind="stable")
                    yield TermRun(hashes[order], frequencies[order])
                report(done, words.nbytes + counts.nbytes)


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


_LEAST_BLOCK, _MOST_BLOCK = 1 << 24, 1 << 30
_MOST_MERGED = 1 << 22
"""entries of a bucket at most, which are sorted in less than a second"""
_COUNTED = 0.85
"""share of the work that counting is; the rest is merging"""


class MappedCounter:
    """Counts the documents of words and terms in all texts.

    The argument ``span`` is the span of the reported work that a call takes.
    """

    def __init__(
        self, texts: TextRows, space: Space, most_bytes: int, threads: int | None, report: TextCheckpoint
    ) -> None:
        """Tables of counts, and buckets that are merged, take about ``most_bytes``; runs lie in the ``space``."""
        self._texts, self._space, self._most_bytes, self._threads, self._report = (
            texts,
            space,
            most_bytes,
            threads,
            report,
        )

    def words(self, least: int, span: Span) -> Iterator[WordCounts]:
        """The words that occur in at least so many documents, a bucket at a time."""
        multiplier, shelf, runs = drawn_multiplier(), _Shelf(self._space), list[WordRun]()
        with self._team() as team:
            for run in word_runs(self._texts, multiplier, self._most_bytes, team, self._counting(span)):
                runs.append(WordRun(*(shelf.kept(array) for array in run)))
        for done, bucket in self._buckets(runs, WORD_BYTES, span):
            yield merged_words(bucket, least, partial(self._report, done))

    def terms(self, words: Sequence[str], least: int, most: int, span: Span) -> Iterator[Frequencies]:
        """The terms of these words, as core.documents.text.tfidf numbers them, in at least ``least`` documents.

        Each bucket gives at most ``most`` terms: those in most documents, of equals the first.
        """
        multiplier, shelf, runs = drawn_multiplier(), _Shelf(self._space), list[TermRun]()
        with self._team() as team:
            known = Words.of(TextRows.of(words))
            for run in term_runs(self._texts, known, multiplier, self._most_bytes, team, self._counting(span)):
                runs.append(TermRun(*(shelf.kept(array) for array in run)))
            del known
        for done, bucket in self._buckets(runs, TERM_BYTES, span):
            self._report(done, TERM_BYTES * sum(len(run.hashes) for run in bucket))
            yield merged_terms(bucket, multiplier, least, most)

    def _team(self) -> "closing[Threads]":
        return closing(threads_for(self._texts, self._threads))

    def _counting(self, span: Span) -> TextCheckpoint:
        counting = span.between(0.0, _COUNTED)
        return lambda done, held: self._report(counting.position(done), held)

    def _buckets(self, runs: Sequence[Run], entry_bytes: int, span: Span) -> Iterator[tuple[float, list[Run]]]:
        """The runs of each bucket, and the share of the work that is done before it."""
        total, merging = sum(len(run.hashes) for run in runs), span.between(_COUNTED, 1.0)
        n_buckets = max(1, -(-total // _MOST_MERGED), -(-entry_bytes * total // max(1, self._most_bytes)))
        for bucket in range(n_buckets):
            yield merging.position(bucket / n_buckets), [in_bucket(run, bucket, n_buckets) for run in runs]
            for run in runs:
                for array in run:
                    Pages(array).release(0, len(array))


class _Shelf:
    """Arrays in a space, many in few large ones: each array of a space may take an open file."""

    def __init__(self, space: Space) -> None:
        self._space, self._block, self._used, self._total = space, np.zeros(0, np.uint8), 0, 0

    def kept(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array, in the space."""
        start = -(-self._used // 8) * 8
        if start + array.nbytes > len(self._block):
            self._block, start = (
                self._space.zeros(max(array.nbytes, _LEAST_BLOCK, min(self._total, _MOST_BLOCK)), np.uint8),
                0,
            )
            self._total += len(self._block)
        self._used = start + array.nbytes
        own: NDArray[Any] = self._block[start : self._used].view(array.dtype)
        own[:] = array
        Pages(own).release(0, len(own))
        return own
