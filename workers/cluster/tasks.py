"""The tasks of the workers of a cluster: pure functions of shards and vectors, so that a task of a dead worker is done
again elsewhere.

A shard is some parts of the rows of a training in one file of the store, which a worker keeps mapped.
A shard has only the columns that occur in it, numbered anew. Its file holds, one after the other: where rows begin
(int64), values (float32), the columns (uint32), and of sparse rows the column of each value (uint32).
"""

import mmap
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows, SparseRows
from core.engine.passes import Passes
from core.engine.requests import Adjoint, Cut, Product, Scores, Vector
from storage.errors import StoreUnavailable, translate_os_errors
from storage.process.settings import Settings
from storage.records import File
from storage.store import Store, open_store
from storage.store.keys import KeyMissing

_SLICE = 1 << 22


class Shard(NamedTuple):
    """Where a shard is stored, and its shape."""

    store_url: str
    file: File
    parts: tuple[tuple[int, int], ...]
    """ranges of its rows"""
    n_rows: int
    n_nonzeros: int
    n_columns: int
    full: bool
    """whether rows store every feature"""


@translate_os_errors("write", "the shards of a training")
def write_shard(path: Path, rows: SparseRows) -> NDArray[np.uint32]:
    """Write rows to a file; returns the columns that occur, ascending. Raises StoreFull where the disk has no room."""
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    spans = [(start, min(start + _SLICE, last)) for start in range(first, last, _SLICE)]
    full = isinstance(rows, FullRows)
    seen = np.full(rows.n_features, full)
    for start, stop in [] if full else spans:
        seen[rows.indices[start:stop]] = True
    columns = np.flatnonzero(seen).astype(np.uint32)
    number = (np.cumsum(seen) - 1).astype(np.uint32)
    with path.open("wb") as file:
        file.write((rows.indptr - first).astype("<i8").data)
        for start, stop in spans:
            file.write(np.ascontiguousarray(rows.values[start:stop], "<f4").data)
        file.write(columns.astype("<u4").data)
        for start, stop in [] if full else spans:
            file.write(number[rows.indices[start:stop]].astype("<u4").data)
    return columns


class _Mapped:
    """A file mapped to be read, that claims to be writable: read-only arrays are another type to Numba.

    Numba would compile the loops once more for it. Nothing writes; a write would end the process. A map that can be
    written to would count as memory that this process allocates.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._bytes = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        self.__array_interface__ = {**self._bytes.__array_interface__, "data": (self._bytes.ctypes.data, False)}


class OpenShard:
    """A shard that is mapped into this process. To another one it goes as where it is stored, and is opened there."""

    def __init__(self, shard: Shard) -> None:
        """Raises StoreDamaged where the file differs from the stored one, and StoreUnavailable where this process reads
        another store.
        """
        self.shard = shard
        held = np.asarray(_Mapped(local_file(shard.store_url, shard.file)))
        ends = np.cumsum(
            [
                0,
                8 * (shard.n_rows + 1),
                4 * shard.n_nonzeros,
                4 * shard.n_columns,
                0 if shard.full else 4 * shard.n_nonzeros,
            ]
        )

        def array(place: int, dtype: Any) -> NDArray[Any]:
            return held[int(ends[place]) : int(ends[place + 1])].view(dtype)

        values = array(1, np.float32)
        self.columns: NDArray[np.uint32] = array(2, np.uint32)
        if shard.full:
            rows: SparseRows = FullRows.of(values.reshape(shard.n_rows, shard.n_columns))
        else:
            rows = SparseRows(array(0, np.int64), array(3, np.uint32), values, shard.n_columns)
        self.passes: Sequence[Passes] = [
            Passes(rows.between(*part), 1, lambda: None, n_parts=1) for part in shard.parts
        ]
        self.lock = Lock()
        """held by who reads it: its passes keep sums"""

    def __reduce__(self) -> tuple[type["OpenShard"], tuple[Shard]]:
        return OpenShard, (self.shard,)

    def __sizeof__(self) -> int:
        """The cost of having it elsewhere, by which the scheduler decides where to read it."""
        return self.shard.file.bytes


def local_file(store_url: str, file: File) -> Path:
    """A file of the job at this worker; raises StoreDamaged for other content, and StoreUnavailable where this process
    reads another store.
    """
    try:
        return opened_store(store_url).local(file)
    except KeyMissing:
        detail = (
            f"{store_url} has no {file.key} for a worker of the cluster: it must reach the store of the service "
            "by this address"
        )
        raise StoreUnavailable(detail) from None


@lru_cache(maxsize=4)
def opened_store(url: str) -> Store:
    """The store at an address, as this worker opens it."""
    settings = Settings()
    return open_store(url, settings.cache_dir, cache_bytes=settings.cache_bytes)


class Answer(NamedTuple):
    """The answer of a pass over a shard."""

    scores: list[Vector]
    """for each right-hand side the scores of the rows that were read, in order"""
    sums: NDArray[np.float64]
    """shape (n_parts, n_right_hand_sides, n_columns + 1)"""


class FewRows(NamedTuple):
    """A vector of rows, mostly 0, as it is sent."""

    positions: NDArray[np.uint32]
    values: Vector
    n_rows: int


Sent = Vector | FewRows


def packed(rows: Vector) -> Sent:
    """A vector of rows in the fewest bytes, as a copy: the job may change its own before it is sent."""
    positions = np.flatnonzero(rows)
    whole = len(positions) * (np.dtype(np.uint32).itemsize + rows.itemsize) >= rows.nbytes
    return rows.copy() if whole else FewRows(positions.astype(np.uint32), rows[positions], len(rows))


def received(rows: Sent) -> Vector:
    """The vector that was packed. As a task: kept on a worker for the passes in which it does not change."""
    if not isinstance(rows, FewRows):
        return rows
    found = np.zeros(rows.n_rows)
    found[rows.positions] = rows.values
    return found


def product(shard: OpenShard, vectors: Sequence[Vector], *sent: Sent) -> Answer:
    """Products of several right-hand sides; ``sent`` has the weights of the rows.

    ``vectors`` are of the columns of the shard and the bias, here and in the others. The sums of each part have the
    bits of core.engine.passes.
    """
    weights, found = [received(each) for each in sent], _empty(shard, len(vectors))
    with shard.lock:
        for number, passes, rows in _parts(shard):
            columns = zip(vectors, _within(weights, rows), _within(found.scores, rows), strict=True)
            found.sums[number] = passes.products([Product(*each) for each in columns])
    scores = [_chosen(each, own != 0) for each, own in zip(found.scores, weights, strict=True)]
    return found._replace(scores=scores)


def cut(shard: OpenShard, vectors: Sequence[Vector], *sent: Sent) -> Answer:
    """Cuts of several right-hand sides; ``sent`` has the labels and the weights of each in turn."""
    rows_of, found = [received(each) for each in sent], _empty(shard, len(vectors))
    with shard.lock:
        for number, passes, rows in _parts(shard):
            labels, weights = _within(rows_of[::2], rows), _within(rows_of[1::2], rows)
            columns = zip(vectors, labels, weights, _within(found.scores, rows), strict=True)
            found.sums[number] = passes.cuts([Cut(*each) for each in columns])
    return found


def adjoint(shard: OpenShard, vectors: Sequence[Vector], *sent: Sent) -> Answer:
    """Adjoints of several weights of the rows; there are no ``vectors``."""
    weights, found = [received(each) for each in sent], _empty(shard, len(sent))
    with shard.lock:
        for number, passes, rows in _parts(shard):
            own = zip(_within(weights, rows), found.sums[number], strict=True)
            passes.adjoints([Adjoint(*each) for each in own])
    return found._replace(scores=[])


def scores(shard: OpenShard, vectors: Sequence[Vector], sent: Sent) -> list[Vector]:
    """Scores by one vector alone, on the rows that ``sent`` does not skip."""
    skipped, found = received(sent), np.zeros(shard.shard.n_rows)
    with shard.lock:
        for _, passes, rows in _parts(shard):
            passes.scores(Scores(vectors[0], skipped[rows], found[rows]))
    return [_chosen(found, skipped == 0)]


def _parts(shard: OpenShard) -> Iterator[tuple[int, Passes, slice]]:
    """The parts of a shard, with their rows."""
    for number, (passes, part) in enumerate(zip(shard.passes, shard.shard.parts, strict=True)):
        yield number, passes, slice(*part)


def _empty(shard: OpenShard, n_right_hand_sides: int) -> Answer:
    sums = np.zeros((len(shard.passes), n_right_hand_sides, shard.shard.n_columns + 1))
    return Answer([np.zeros(shard.shard.n_rows) for _ in range(n_right_hand_sides)], sums)


def _within(vectors: Sequence[Vector], rows: slice) -> list[Vector]:
    return [each[rows] for each in vectors]


def _chosen(found: Vector, mask: NDArray[np.bool_]) -> Vector:
    """The scores of the rows that a pass reads."""
    return found if mask.all() else found[mask]


def scores_of(found: Answer) -> list[Vector]:
    """The scores alone: the job reads nothing else of an answer."""
    return found.scores


def added(total: NDArray[np.float64] | None, found: Answer, shard: OpenShard, length: int) -> NDArray[np.float64]:
    """The sums of all parts up to this shard's, shape (n_right_hand_sides, length), added in the order of the parts."""
    places = np.append(shard.columns.astype(np.int64), length - 1)
    total = np.zeros((found.sums.shape[1], length)) if total is None else total.copy()
    for sums in found.sums:
        total[:, places] += sums
    return total
