"""A copy of a whole store in one tar file, and back: of a folder or of a bucket, into either.

Everything that counts is in the store, under keys that become the names of the members. The service may go on while it is copied. No record
changes once it is written, so what counts is the order: a record is copied before the records and files that it names, which were there before it,
and what a deletion removes first is copied after all that it removes later. A job that was not over when the copy began, and whose version is not in
it, is in it as it was asked for, and is run when the store is brought back.
"""

import io
import json
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import ObjectStore as Client

from core.errors import HalfmoonError
from workers.contract import Version
from workers.store.keys import check_key, is_key

PARTS = ("models", "keys", "idempotency", "open", "jobs", "datasets")
"""of a store; what else there is concerns deletions under way"""
_END = "backup.json"
"""the last member of a backup that is whole: how many files and bytes there are before it"""
_PIECE_BYTES = 8 << 20


class BackupFailed(HalfmoonError):
    """A store was not copied, or not brought back; the text says why, and what there is now."""


class Copied(NamedTuple):
    """What was copied."""

    files: int
    bytes: int


def back_up(store: Client, path: Path) -> Copied:
    """Write a store into a new file, which is there when it is whole. Raises BackupFailed."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    if path.exists():
        raise BackupFailed(f"{path} exists; choose another file, or remove it")
    try:
        with _failures(f"nothing was written to {path}"):
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # it holds the digests of keys
            with os.fdopen(descriptor, "wb") as file:
                with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
                    copied = _sum(_written(tar, store, key, content) for key, content in _in_order(store))
                    if not copied.files:
                        raise BackupFailed("there is nothing in the store: no backup was made")
                    _add(tar, _END, json.dumps(copied._asdict()).encode())
                file.flush()
                os.fsync(file.fileno())
            unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return copied


def restore(store: Client, path: Path) -> Copied:
    """Bring a backup into an empty store; if it fails, the store is empty again. Raises BackupFailed."""
    with _failures("nothing was restored"):
        if there := [part for part in PARTS if next(_keys(store, part), None) is not None]:
            raise BackupFailed(f"the store is not empty, it has {', '.join(there)}: nothing was restored; choose an empty one")
        try:
            with tarfile.open(path) as tar:
                copied, promised = _brought(tar, store)
            if copied != promised:
                raise BackupFailed(f"{path} is not a whole backup: nothing was restored")
        except BaseException:
            for part in PARTS:
                for key in list(_keys(store, part)):
                    obstore.delete(store, key)
            raise
    os.sync()
    return copied


def _in_order(store: Client) -> Iterator[tuple[str, bytes | None]]:
    """The keys to copy, some with their content."""
    over = _jobs_that_are_over(store)
    yield from _alone(_keys(store, "models", lambda key: key[2:3] == ["aliases"]))
    versions, whole = set(), set(over)
    for key in _keys(store, "models", lambda key: key[2:3] == ["versions"]):
        record = bytes(obstore.get(store, key).bytes())
        versions.add(key)
        whole.add(_job_of(key, record))
        yield key, record
    yield from _alone(_keys(store, "keys"))
    yield from _alone(_keys(store, "idempotency"))
    yield from _alone(_keys(store, "jobs", lambda key: key[2:] == ["cancel.json"] or (key[1] in whole and not _request(key))))
    for key in _keys(store, "jobs", _request):
        yield key, None
        if key.split("/")[1] not in over:
            yield f"open/{key.split('/')[1]}", b""
    manifests = list(_keys(store, "datasets", _manifest))
    yield from _alone(_keys(store, "datasets", lambda key: not _manifest(key)))
    yield from _alone(manifests)
    # whose files may be gone by now
    yield from _alone(
        key for key in _keys(store, "models", lambda key: key[2:3] == ["deleted"]) if key.replace("/deleted/", "/versions/") in versions
    )


def _alone(keys: Iterable[str]) -> Iterator[tuple[str, None]]:
    return ((key, None) for key in keys)


def _jobs_that_are_over(store: Client) -> set[str]:
    known = {prefix.split("/")[1] for prefix in obstore.list_with_delimiter(store, "jobs")["common_prefixes"]}
    # in this order: a job is on the list of the unfinished before it is known
    return known - {key.split("/")[1] for key in _keys(store, "open")}


def _job_of(key: str, version: bytes) -> str:
    try:
        return Version.model_validate_json(version).job
    except ValueError:
        raise BackupFailed(f"{key} is damaged: no backup was made") from None


def _request(key: list[str]) -> bool:
    return key[2:] == ["request.json"]


def _manifest(key: list[str]) -> bool:
    return key[2:] == ["manifest.json"]


def _keys(store: Client, part: str, wanted: Callable[[list[str]], bool] = lambda key: True) -> Iterator[str]:
    """The keys of a part whose segments are ``wanted``. What else a folder may hold, hidden files, is no key."""
    for entries in obstore.list(store, part):
        for entry in entries:
            if is_key(entry["path"]) and wanted(entry["path"].split("/")):
                yield entry["path"]


def _written(tar: tarfile.TarFile, store: Client, key: str, content: bytes | None) -> int | None:
    """The bytes that were copied; None if they were deleted meanwhile."""
    if content is not None:
        return _add(tar, key, content)
    try:
        found = obstore.get(store, key)
    except (NotFoundError, FileNotFoundError):
        return None
    member = tarfile.TarInfo(key)
    member.size, member.mtime, member.mode = found.meta["size"], int(found.meta["last_modified"].timestamp()), 0o600
    tar.addfile(member, cast("BinaryIO", _Pieces(piece for piece in found.stream(min_chunk_size=_PIECE_BYTES))))
    return member.size


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> int:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    tar.addfile(member, io.BytesIO(content))
    return len(content)


def _brought(tar: tarfile.TarFile, store: Client) -> tuple[Copied, Copied | None]:
    """What was copied, and what the end of the backup, if it has one, says that it holds. Raises BackupFailed for what no backup has."""
    sizes: list[int] = []
    for member in tar:
        content = tar.extractfile(member) if member.isfile() else None
        if content is not None and member.name == _END:
            return _sum(iter(sizes)), Copied(**json.load(content))
        if content is None or member.name.partition("/")[0] not in PARTS:
            raise BackupFailed(f"{member.name!r} is not of a store: nothing was restored")
        obstore.put(store, check_key(member.name), content)
        sizes.append(member.size)
    return _sum(iter(sizes)), None


def _sum(sizes: Iterator[int | None]) -> Copied:
    files, total = 0, 0
    for size in sizes:
        if size is not None:
            files, total = files + 1, total + size
    return Copied(files, total)


class _Pieces:
    """What a tar file is written from: pieces of bytes, read as one file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def read(self, size: int) -> bytes:
        """The next bytes, ``size`` unless it is the end."""
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
    """What store, disk or file refuse becomes BackupFailed, which tells the state after it."""
    try:
        yield
    except (BaseError, OSError, tarfile.TarError, ValueError, TypeError) as error:
        raise BackupFailed(f"{error}: {state}") from error
