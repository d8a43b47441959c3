"""Counts of documents: of the words and pairs of some texts, exactly, in tables that threads work on side by side."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from core.documents.kinds import TextRows
from core.documents.text.batches import batches
from core.documents.text.term_loops import count_terms, move_terms
from core.documents.text.words import Scan, Words, drawn_multiplier
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
