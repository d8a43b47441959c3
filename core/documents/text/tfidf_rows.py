"""The rows of a collection of texts, by compiled loops on all threads: to the bits of ``TextTerms.read``, in a small
part of its time.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.text.batches import TextCheckpoint, batches, threads_for
from core.documents.text.term_loops import DIGITS, place_terms, weigh_texts
from core.documents.text.tfidf import SMALL_LOGS, TextTerms
from core.documents.text.words import Words, drawn_multiplier
from core.documents.vocabulary import string_bytes


def weighed(
    texts: TextRows, terms: TextTerms, report: TextCheckpoint, threads: int | None = None
) -> Iterator[SparseRows]:
    """The rows of the texts, in parts, in order. ``threads``: how many; None: one a core."""
    reader, team, done = _Reader(terms), threads_for(texts, threads), 0.0

    def checkpoint() -> None:
        report(done, reader.nbytes)

    try:
        for batch in batches(texts, team.count):
            found: dict[int, SparseRows] = {}

            def read(start: int, stop: int, found: dict[int, SparseRows] = found) -> None:
                found[start] = reader.read(texts.between(start, stop))

            team.side_by_side([partial(read, *span) for span in batch], checkpoint)
            yield from (found[start] for start, _ in batch)
            done = batch[-1][1] / texts.n_rows
            checkpoint()
    finally:
        team.close()


class _Reader:
    """Reads texts by tables of words and terms. Threads may read side by side."""

    def __init__(self, terms: TextTerms) -> None:
        self._words, self._pairs, self._idf = Words.of(TextRows.of(terms.words)), terms.ngrams > 1, terms.idf
        self._multiplier = drawn_multiplier()
        self._table = np.zeros((2 * len(terms.keys) + 1, 2), np.uint64)
        place_terms(terms.keys, self._table, self._multiplier)
        self.nbytes = (
            self._words.nbytes
            + self._table.nbytes
            + terms.keys.nbytes
            + terms.idf.nbytes
            + sum(map(string_bytes, terms.words))
        )
        """Memory held, terms included."""

    def read(self, texts: TextRows) -> SparseRows:
        """The rows of these texts."""
        words, owners, *_ = self._words.scan(texts, keep_unknown=False)
        most = (2 if self._pairs else 1) * len(words)
        columns, spare = np.empty(most, np.uint32), np.empty(most, np.uint32)
        weights, values = np.empty(most), np.empty(most, np.float32)
        counts, indptr = np.empty(DIGITS, np.int64), np.zeros(texts.n_rows + 1, np.int64)
        tables = self._table, self._multiplier, self._idf, SMALL_LOGS
        weigh_texts(words, owners, self._pairs, *tables, columns, spare, weights, counts, indptr, values)
        return SparseRows(indptr, columns[: indptr[-1]].copy(), values[: indptr[-1]].copy(), len(self._idf))
