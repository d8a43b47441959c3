"""Shards: some parts of the rows of a training in one file of the store, which a worker of the cluster keeps mapped.

A shard has only the columns that occur in it, numbered anew. Its file holds, one after the other: where rows begin
(int64), values (float32), the columns (uint32), and of sparse rows the column of each value (uint32).
"""

import mmap
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows, SparseRows
from core.engine.passes import Passes
from storage.errors import StoreUnavailable
from storage.process.settings import Settings
from storage.records import File
from storage.store import Store, open_store
from storage.store.keys import KeyMissing
from storage.store.local_files import translate_os_errors

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
