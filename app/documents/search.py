"""Search for documents that contain a text: in their words, or in the names of their features."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.errors import InvalidRequest
from core.documents.kinds import FIELDS, NamedRows, Rows, TextRows, parts_of, spans

_SPAN_ROWS, _SPAN_BYTES = 1 << 13, 1 << 20
_MOST_BYTES = 16 << 20
"""Bytes of documents that one search reads: a fraction of 100 ms."""


class Hits(NamedTuple):
    """The result of one search."""

    positions: NDArray[np.int64]
    """Positions of documents that contain the text, in the order of the candidates."""
    passed: int
    """Number of candidates that were looked at."""


def search(rows: Rows, candidates: NDArray[np.int64], text: str, most: int) -> Hits:
    """The first ``most`` of the candidates that contain ``text`` in any case; fewer where that would take too long.

    Raises InvalidRequest for documents that have neither words nor names.
    """
    parts, wanted = parts_of(rows), text.lower()
    contains: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
    match parts.get(FIELDS["text"]) or parts.get(FIELDS["features"]):
        case TextRows() as texts:
            contains = partial(_with_text, texts, wanted)
        case NamedRows() as named:
            columns = np.fromiter((wanted in name.lower() for name in named.names), bool, len(named.names))
            contains = partial(_with_name, named, columns)
        case _:
            raise InvalidRequest("contains", "is for text and for named features: vectors have no words")
    found: list[NDArray[np.int64]] = []
    passed = count = 0
    for chosen in _spans(rows, candidates):
        hits = chosen[contains(chosen)]
        found.append(hits)
        if count + len(hits) >= most:
            last = hits[most - count - 1]
            return Hits(np.concatenate(found)[:most], passed + int(np.flatnonzero(chosen == last)[0]) + 1)
        count += len(hits)
        passed += len(chosen)
    return Hits(np.concatenate([np.zeros(0, np.int64), *found]), passed)


def _spans(rows: Rows, candidates: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Parts of the candidates, until they have as many bytes as one search may read."""
    read = 0
    for start in range(0, len(candidates), _SPAN_ROWS):
        block = candidates[start : start + _SPAN_ROWS]
        lengths = rows.indptr[block + 1] - rows.indptr[block]
        for first, last in spans(np.concatenate([[0], np.cumsum(lengths)]), _SPAN_ROWS, _SPAN_BYTES):
            yield block[first:last]
            read += int(lengths[first:last].sum()) + (last - first)
            if read >= _MOST_BYTES:
                return


def _with_text(rows: TextRows, text: str, chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which texts contain a text in lower case."""
    together = (np.diff(chosen) == 1).all()
    texts = rows.between(int(chosen[0]), int(chosen[-1]) + 1) if together else rows.taken(chosen)
    return np.fromiter((text in each.lower() for each in texts), bool, len(chosen))


def _with_name(named: NamedRows, wanted: NDArray[np.bool_], chosen: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which documents have one of the wanted features."""
    rows = named.taken(chosen).rows
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    counts = np.concatenate([[0], np.cumsum(wanted[rows.indices[first:last]])])
    return np.diff(counts[rows.indptr - first]) > 0
