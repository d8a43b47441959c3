"""Ids of documents: a file with a line of JSON for each.

It exists only if some id is not the position of its document.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from mmap import mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.errors import MAX_FAULTS, Fault, InvalidDocuments
from storage.records import MAX_TEXT
from storage.repositories.datasets.files.npy import NpyWriter, chunks, grouped, mapped, open_array, open_bytes
from storage.repositories.datasets.labels import text_detail

_BLOCK = 10_000
_BLOCK_BYTES = 1 << 16
_COMPARED = 1 << 17
"""Hashes of ids that are compared with each other at a time, or twice as many."""
_encode_lines = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder(str).decode


class IdWriter:
    """Writer of the ids of a dataset, in order. Memory does not grow with them; ``seal`` finds duplicates."""

    def __init__(self, folder: Path) -> None:
        self.n_bytes = 0
        self._folder = folder
        self._count = 0
        self._file: IO[bytes] | None = None
        self._hashes: NpyWriter | None = None

    def append(self, given: Sequence[str | None] | None, count: int) -> None:
        """Append the ids of the next ``count`` documents, which are valid."""
        ids = None if given is None else [str(self._count + k) if id is None else id for k, id in enumerate(given)]
        if self._file is None and ids is not None and any(id != str(self._count + k) for k, id in enumerate(ids)):
            # the documents so far have their positions as ids
            self._file = (self._folder / "ids.ndjson").open("wb")
            self._hashes = NpyWriter(self._folder / "id-hashes.npy", "<i8")
            for start in range(0, self._count, _BLOCK):
                self._write(_positions(start, min(start + _BLOCK, self._count)))
        if self._file is not None:
            self._write(ids if ids is not None else _positions(self._count, self._count + count))
        self._count += count

    def seal(self) -> Path | None:
        """The finished file, None if every id is the position of its document; raises InvalidDocuments naming ids that
        occur twice.
        """
        if self._file is None or self._hashes is None:
            return None
        self._file.close()
        path, hashes = Path(self._file.name), self._hashes.finish()
        _refuse_duplicates(path, open_array(hashes))
        hashes.unlink()
        return path

    def close(self) -> None:
        """Close the files, even when the rest cannot be written any more."""
        for file in (self._file, self._hashes):
            if file is not None:
                with suppress(OSError):
                    file.close()

    def _write(self, ids: list[str]) -> None:
        assert self._file is not None
        assert self._hashes is not None
        self.n_bytes += self._file.write(_encode_lines(ids))
        # the hash of strings has another key in each process, so no client can send ids that collide
        self._hashes.append(np.fromiter(map(hash, ids), np.int64, len(ids)))


def all_valid(ids: Sequence[Any]) -> bool:
    """Whether ids are valid beyond doubt, by all of them together: then none need be checked by itself."""
    given = [id for id in ids if id is not None]
    return set(map(type, given)) <= {str} and (
        not given or (all(given) and max(map(len, given)) <= MAX_TEXT and "".join(given).isascii())
    )


def id_detail(id: Any) -> str | None:
    """Why a given id is not valid, None if it is."""
    return text_detail(id) if isinstance(id, str) else "must be a string"


class Ids:
    """Ids in the order of their documents.

    The file may be removed once it is open; an iteration holds a block of it at a time.
    """

    def __init__(self, path: Path | None, count: int) -> None:
        self._data = None if path is None else open_bytes(path)
        self._count = count

    @property
    def positional(self) -> bool:
        """Whether every id is the position of its document."""
        return self._data is None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        if self._data is None:
            return (str(position) for position in range(self._count))
        return map(_decode, _lines(self._data))

    def taken(self, positions: Sequence[int]) -> list[str]:
        """The ids of the documents at ascending positions. Other lines are counted, not decoded."""
        if self._data is None:
            return [str(position) for position in positions]
        found: list[str] = []
        wanted, passed = deque(positions), 0
        for block in _blocks(self._data):
            if not wanted:
                break
            count = block.count(b"\n")
            if wanted[0] < passed + count:
                lines = block.splitlines()
                while wanted and wanted[0] < passed + count:
                    found.append(_decode(lines[wanted.popleft() - passed]))
            passed += count
        return found

    def by_position(self, positions: Iterable[int]) -> dict[int, str]:
        """The ids of the documents at positions in any order, by position in ascending order."""
        ascending = sorted(set(positions))
        return dict(zip(ascending, self.taken(ascending), strict=True))

    def hashes(self) -> NDArray[np.int64]:
        """Hash of each line of the file, shape (n_documents,), in this process; for ``IdIndex``.

        Ids that are positions have none.
        """
        assert self._data is not None
        return np.fromiter((hash(line) for line in _lines(self._data)), np.int64, self._count)


def _blocks(data: mmap | bytes) -> Iterator[bytes]:
    """Blocks of a file of JSON, each of whole lines. Within a line no end of line occurs, and the last line has one."""
    start = 0
    while start < len(data):
        stop = data.find(b"\n", start + _BLOCK_BYTES) + 1 or len(data)
        yield data[start:stop]
        start = stop


def _lines(data: mmap | bytes) -> Iterator[bytes]:
    for block in _blocks(data):
        yield from block.splitlines()


def _positions(start: int, stop: int) -> list[str]:
    return [str(position) for position in range(start, stop)]


def _refuse_duplicates(path: Path, hashes: NDArray[np.int64]) -> None:
    """Raise InvalidDocuments for ids that occur twice: the first ids of equal hashes are compared."""
    pairs = _repeated(hashes, path.parent).tolist()
    ids = Ids(path, len(hashes)).by_position(position for pair in pairs for position in pair)
    faults = [
        Fault(ids[again], "id", f"is used twice, again by document number {again + 1}")
        for again, before in pairs
        if ids[again] == ids[before]
    ]
    if faults:
        raise InvalidDocuments(f"document ids must differ: {faults[0].document!r} {faults[0].detail}", faults)


def _repeated(hashes: NDArray[np.int64], folder: Path) -> NDArray[np.int64]:
    """The first positions of hashes that occur before, ascending, each with the position before; of shape (n, 2), at
    most MAX_FAULTS.

    Hashes with equal last bits are brought together in a file, and compared with each other, so that memory does not
    grow with the documents.
    """
    found = []
    ends = np.zeros((1 << (len(hashes) // _COMPARED).bit_length()) + 2, np.int64)
    last_bits = len(ends) - 3

    def parts() -> Iterator[tuple[NDArray[np.integer[Any]], ...]]:
        for start, each in zip(range(0, len(hashes), _COMPARED), chunks(hashes, _COMPARED), strict=True):
            part = (each & last_bits).astype(np.min_scalar_type(last_bits))
            yield part, each, np.arange(start, start + len(each))

    with TemporaryFile(dir=folder) as file:
        ordered, positions = mapped(file, np.int64, 2 * len(hashes)).reshape(2, -1)
    for _ in grouped(parts, ends, (ordered, positions)):
        pass
    for start, stop in pairwise(ends[:-1].tolist()):
        # hashes that differ are spread evenly: where a part has more than these, the first of them occur again
        own = ordered[start : min(stop, start + 2 * _COMPARED)]
        order = np.argsort(own, kind="stable")
        same = own[order[1:]] == own[order[:-1]]
        pairs = positions[start + np.stack([order[1:][same], order[:-1][same]], axis=1)]
        found.append(pairs[np.argsort(pairs[:, 0])[:MAX_FAULTS]])
    pairs = np.concatenate(found)
    return pairs[np.argsort(pairs[:, 0])[:MAX_FAULTS]]


class IdIndex:
    """The ids of one set of documents, by their hashes. A hash is only a hint: the id at the position decides."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        if not ids.positional:
            hashes = ids.hashes()
            self._order = np.argsort(hashes, kind="stable")
            self._hashes = hashes[self._order]

    def __len__(self) -> int:
        return len(self._ids)

    def find(self, wanted: Collection[str]) -> dict[str, int]:
        """Positions of the documents with these ids; ids that no document has are left out."""
        if self._ids.positional:
            return {id: position for id in wanted if (position := _position(id, len(self._ids))) is not None}
        found = sorted((position, id) for id in wanted for position in self._candidates(id))
        names = self._ids.taken([position for position, _ in found])
        return {id: position for (position, id), name in zip(found, names, strict=True) if name == id}

    def _candidates(self, id: str) -> list[int]:
        hashed = np.int64(hash(msgspec.json.encode(id)))  # of its line, as in ``Ids.hashes``
        first, last = np.searchsorted(self._hashes, hashed, "left"), np.searchsorted(self._hashes, hashed, "right")
        return [*self._order[first:last].tolist()]


def _position(id: str, count: int) -> int | None:
    """The position that an id says, None if it is none below ``count``.

    Python refuses to convert thousands of digits.
    """
    if not (len(id) <= len(str(count)) and id.isascii() and id.isdigit()):
        return None
    position = int(id)
    return position if str(position) == id and position < count else None
