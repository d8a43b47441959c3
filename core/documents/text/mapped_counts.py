"""Counts of texts with more terms than memory holds: runs lie in a space, and are merged by buckets."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.space import Pages, Space
from core.documents.text.batches import TextCheckpoint, threads_for
from core.documents.text.counts import Frequencies
from core.documents.text.runs import (
    TERM_BYTES,
    WORD_BYTES,
    Run,
    TermRun,
    WordCounts,
    WordRun,
    in_bucket,
    merged_terms,
    merged_words,
    term_runs,
    word_runs,
)
from core.documents.text.words import Words, drawn_multiplier
from core.progress import Span
from core.threads import Threads

_LEAST_BLOCK, _MOST_BLOCK = 1 << 24, 1 << 30
_MOST_MERGED = 1 << 22
"""entries of a bucket at most, which are sorted in less than a second"""
_COUNTED = 0.85
"""share of the work that counting is; the rest is merging"""


class MappedCounter:
    """Counts the documents of words and terms in all texts.

    The argument ``part`` says which part of the work that is reported a call is.
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

    def words(self, least: int, part: Span) -> Iterator[WordCounts]:
        """The words that occur in at least so many documents, a bucket at a time."""
        multiplier, shelf, runs = drawn_multiplier(), _Shelf(self._space), list[WordRun]()
        with self._team() as team:
            for run in word_runs(self._texts, multiplier, self._most_bytes, team, self._counting(part)):
                runs.append(WordRun(*(shelf.kept(array) for array in run)))
        for done, bucket in self._buckets(runs, WORD_BYTES, part):
            yield merged_words(bucket, least, partial(self._report, done))

    def terms(self, words: Sequence[str], least: int, most: int, part: Span) -> Iterator[Frequencies]:
        """The terms of these words, as core.documents.text.tfidf numbers them, in at least ``least`` documents.

        Each bucket gives at most ``most`` terms: those in most documents, of equals the first.
        """
        multiplier, shelf, runs = drawn_multiplier(), _Shelf(self._space), list[TermRun]()
        with self._team() as team:
            known = Words.of(TextRows.of(words))
            for run in term_runs(self._texts, known, multiplier, self._most_bytes, team, self._counting(part)):
                runs.append(TermRun(*(shelf.kept(array) for array in run)))
            del known
        for done, bucket in self._buckets(runs, TERM_BYTES, part):
            self._report(done, TERM_BYTES * sum(len(run.hashes) for run in bucket))
            yield merged_terms(bucket, multiplier, least, most)

    def _team(self) -> "closing[Threads]":
        return closing(threads_for(self._texts, self._threads))

    def _counting(self, part: Span) -> TextCheckpoint:
        counting = part.between(0.0, _COUNTED)
        return lambda done, held: self._report(counting.position(done), held)

    def _buckets(self, runs: Sequence[Run], entry_bytes: int, part: Span) -> Iterator[tuple[float, list[Run]]]:
        """The runs of each bucket, and the share of the work that is done before it."""
        total, merging = sum(len(run.hashes) for run in runs), part.between(_COUNTED, 1.0)
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
