"""Backup of a whole store in one tar file, and restore: from a folder or a bucket, into either.

The keys of the store become the names of the members. The service may run while it is copied. Records do not change, so
the order makes the copy consistent:

- A record is copied before the records and files that it names, which existed before it.
- What a deletion removes first is copied after what it removes later.
- A job that had not ended when the copy began, and whose version is not in the copy, is copied as its request alone.
  It is run after the restore.
"""

import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import ObjectStore as Client

from core.errors import HalfmoonError
from storage.records import Record, Version
from storage.store.keys import check_key, is_key
from storage.upkeep.binding import FORMAT

PARTS = ("models", "keys", "webhooks", "idempotency", "open", "jobs", "datasets")
"""Prefixes of a store that are copied. The others hold deletions and messages under way."""
_END = "backup.json"
"""Name of the last member of a complete backup: the number of files and bytes before it, and the format of the
store."""
_PIECE_BYTES = 8 << 20
_MOST_PROMISE_BYTES = 1 << 12


class BackupFailed(HalfmoonError):
    """A store was not copied, or not restored; the text says why, and how things are now."""


class Copied(NamedTuple):
    """Number of files and bytes that were copied."""

    files: int
    bytes: int


class _Promise(Record):
    """The promise of the last member of a backup about the members before it."""

    files: int
    bytes: int
    format: int = 1


def back_up(store: Client, path: Path, damaged: Callable[[str], object] = lambda key: None) -> Copied:
    """Copy a store into a new file, which gets its name when it is complete. Raises BackupFailed.

    ``damaged`` is called with the key of each version that cannot be read: it is copied as it is, and keeps nothing
    else from being copied.
    """
    if path.exists():
        raise BackupFailed(f"{path} exists; choose another file, or remove it")
    unfinished = path.with_name(f"{path.name}.unfinished")
    try:
        with _failures(f"nothing was written to {path}"):
            descriptor = os.open(
                unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
            )  # it holds the digests of keys
            with os.fdopen(descriptor, "wb") as file:
                with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                    copied = _total(_copy_file(tar, store, key, content) for key, content in _in_order(store, damaged))
                    if not copied.files:
                        raise BackupFailed("there is nothing in the store: no backup was made")
                    _add(
                        tar,
                        _END,
                        _Promise(files=copied.files, bytes=copied.bytes, format=FORMAT).model_dump_json().encode(),
                    )
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return copied


def restore(store: Client, path: Path) -> Copied:
    """Copy a backup into an empty store. If this fails, the store is emptied again. Raises BackupFailed."""
    with _failures("nothing was restored"):
        if there := [part for part in PARTS if next(_keys(store, part), None) is not None]:
            raise BackupFailed(
                f"the store is not empty, it has {', '.join(there)}: nothing was restored; choose an empty one"
            )
        try:
            # a backup is not compressed: what would unpack to more than its size is none
            with tarfile.open(path, "r:") as tar:
                copied, promised = _restored(tar, store)
            if copied != promised:
                raise BackupFailed(f"{path} is not a whole backup: nothing was restored")
        except BaseException:
            for part in PARTS:
                for key in list(_keys(store, part)):
                    obstore.delete(store, key)
            raise
    os.sync()
    return copied


def _in_order(store: Client, damaged: Callable[[str], object]) -> Iterator[tuple[str, bytes | None]]:
    """Keys to copy, in an order that makes the copy consistent; some with their content."""
    jobs = {prefix.split("/")[1] for prefix in obstore.list_with_delimiter(store, "jobs")["common_prefixes"]}
    # in this order: a job is open before it has a folder
    over = jobs - {key.split("/")[1] for key in _keys(store, "open")}
    yield from _without_content(_keys(store, "models", lambda key: key[2:3] == ["aliases"]))
    versions, whole = set(), set(over)
    for key in _keys(store, "models", lambda key: key[2:3] == ["versions"]):
        record = bytes(obstore.get(store, key).bytes())
        versions.add(key)
        job = _job_of(record)
        if job is None:
            damaged(key)
        else:
            whole.add(job)
        yield key, record
    files_of_jobs = _keys(
        store, "jobs", lambda key: key[2:] == ["cancel.json"] or (key[1] in whole and not _request(key))
    )
    small = (_keys(store, part) for part in ("keys", "webhooks", "idempotency"))
    yield from _without_content(chain(*small, files_of_jobs))
    for key in _keys(store, "jobs", _request):
        yield key, None
        if key.split("/")[1] not in over:
            yield f"open/{key.split('/')[1]}", b""
    manifests = list(_keys(store, "datasets", _manifest))
    # the files of these versions may be gone by now
    deleted = (
        key
        for key in _keys(store, "models", lambda key: key[2:3] == ["deleted"])
        if key.replace("/deleted/", "/versions/") in versions
    )
    files_of_datasets = _keys(store, "datasets", lambda key: not _manifest(key))
    yield from _without_content(chain(files_of_datasets, manifests, deleted))


def _without_content(keys: Iterable[str]) -> Iterator[tuple[str, None]]:
    return ((key, None) for key in keys)


def _job_of(version: bytes) -> str | None:
    """The job of a version; None if the record is damaged."""
    try:
        return Version.model_validate_json(version).job
    except ValueError:
        return None


def _request(key: list[str]) -> bool:
    return key[2:] == ["request.json"]


def _manifest(key: list[str]) -> bool:
    return key[2:] == ["manifest.json"]


def _keys(store: Client, part: str, wanted: Callable[[list[str]], bool] = lambda key: True) -> Iterator[str]:
    """Keys of a part with ``wanted`` segments. Hidden files of a folder are no keys."""
    for entries in obstore.list(store, part):
        for entry in entries:
            if is_key(entry["path"]) and wanted(entry["path"].split("/")):
                yield entry["path"]


def _copy_file(tar: tarfile.TarFile, store: Client, key: str, content: bytes | None) -> int | None:
    """Number of bytes that were copied; None if they were deleted meanwhile."""
    if content is not None:
        return _add(tar, key, content)
    try:
        found = obstore.get(store, key)
    except (NotFoundError, FileNotFoundError):
        return None
    member = tarfile.TarInfo(key)
    member.size, member.mtime, member.mode = found.meta["size"], int(found.meta["last_modified"].timestamp()), 0o600
    tar.addfile(member, cast("BinaryIO", _PieceReader(piece for piece in found.stream(min_chunk_size=_PIECE_BYTES))))
    return member.size


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> int:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    tar.addfile(member, io.BytesIO(content))
    return len(content)


def _restored(tar: tarfile.TarFile, store: Client) -> tuple[Copied, Copied | None]:
    """The restored number of files and bytes, and the number that the end of the backup promises, if it has one.

    Raises BackupFailed for a member that no backup has.
    """
    sizes: list[int] = []
    for member in tar:
        content = tar.extractfile(member) if member.isfile() else None
        if content is not None and member.name == _END:
            return _total(iter(sizes)), _promised(content.read(_MOST_PROMISE_BYTES))
        if content is None or member.name.partition("/")[0] not in PARTS:
            raise BackupFailed(f"{member.name!r} is not of a store: nothing was restored")
        obstore.put(store, check_key(member.name), content)
        sizes.append(member.size)
    return _total(iter(sizes)), None


def _promised(end: bytes) -> Copied:
    """Number of files and bytes of a backup, by its last member.

    Raises BackupFailed for the backup of a newer format, ValueError for a member that is none.
    """
    promised = _Promise.model_validate_json(end)
    if promised.format > FORMAT:
        raise BackupFailed(
            f"the backup has format {promised.format}, this version of halfmoon reads formats up to {FORMAT}: nothing "
            "was restored; upgrade"
        )
    return Copied(promised.files, promised.bytes)


def _total(sizes: Iterator[int | None]) -> Copied:
    copied = [size for size in sizes if size is not None]
    return Copied(len(copied), sum(copied))


class _PieceReader:
    """Pieces of bytes, read as one file, from which a member of a tar file is written."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        """The next bytes: ``size`` of them, or fewer at the end."""
        taken = bytearray()
        while len(taken) < size:
            if not self._rest:
                piece = next(self._pieces, None)
                if piece is None:
                    break
                self._rest = memoryview(piece)
            part = self._rest[: size - len(taken)]
            self._rest = self._rest[len(part) :]
            taken += part
        return bytes(taken)


@contextmanager
def _failures(state: str) -> Iterator[None]:
    """Raise BackupFailed, with the state after it, for refusals of store, disk or file."""
    try:
        yield
    except (BaseError, OSError, tarfile.TarError, ValueError, TypeError) as error:
        raise BackupFailed(f"{error}: {state}") from error
