"""The store in an S3-compatible bucket, through obstore, with a bounded local cache of its files by their checksums."""

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, cast

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import ObjectStore as Client
from obstore.store import S3Store

from storage.errors import StoreDamaged, StoreUnavailable, translate_os_errors
from storage.records import File
from storage.store.forks import note_use
from storage.store.keys import KeyMissing, check_key, keys_among
from storage.store.local_files import Staged, report_fetched, sha256_of

_PROBE = "probe"
_CONNECT_TIMEOUT = timedelta(seconds=3)
_TIMEOUT = timedelta(seconds=30)
"""time-out of a call that reads or writes a record, or a part of a file that is uploaded"""
_RETRIES = 2
_SILENCE = timedelta(seconds=10)
"""silence after which the fetching of a file begins anew, at the byte that it has reached"""
_FILE_TIMEOUT = timedelta(days=1)
_FETCH_TRIES = 4
"""tries to go on with a file, none of which brings a byte"""
_FETCH_PAUSE_SECONDS = 0.5
_PIECE_BYTES = 1 << 20
_UPLOADED_PARTS = 2
"""parts of a file that are uploaded at a time: each must arrive within _TIMEOUT, also where the network is slow"""
_CREATE_TRIES = 5


def open_s3(url: str, cache: Path | None, cache_bytes: int, options: Mapping[str, str]) -> "BucketStore":
    """The store at ``s3://bucket/prefix``. Credentials come from the usual places; ``options`` override them."""
    files = client_of(url, options, timeout=_FILE_TIMEOUT, read_timeout=_SILENCE)
    return BucketStore(
        client_of(url, options), files, cache or Path(tempfile.gettempdir()) / "halfmoon-cache", cache_bytes
    )


def client_of(
    url: str, options: Mapping[str, str], timeout: timedelta = _TIMEOUT, read_timeout: timedelta = _TIMEOUT
) -> Client:
    """A client of the bucket, with time-outs of seconds instead of minutes.

    ``timeout`` to the last byte, ``read_timeout`` from one to the next.
    """
    # the address of an endpoint decides whether it is http or https
    return S3Store.from_url(
        url,
        client_options={
            "allow_http": True,
            "connect_timeout": _CONNECT_TIMEOUT,
            "timeout": timeout,
            "read_timeout": read_timeout,
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": _TIMEOUT},
        **cast("dict[str, Any]", dict(options)),
    )


class BucketStore(Staged):
    """A Store over an obstore client with a conditional ``create`` (S3: ``If-None-Match: *``).

    ``files`` is a client that fetches files.
    """

    def __init__(self, client: Client, files: Client, cache: Path, cache_bytes: int) -> None:
        self._client = client
        self._files = files
        super().__init__(cache / "staging")
        self._cache = FileCache(cache / "files", cache_bytes, self.own_folder)

    def create(self, key: str, data: bytes) -> bool:
        """See Store. Two writers of the same bytes under the same key may both get true."""
        for _ in range(_CREATE_TRIES):
            with _translate_errors("write", key):
                try:
                    obstore.put(self._client, check_key(key), data, mode="create", use_multipart=False)
                    return True
                except AlreadyExistsError:
                    if not data:
                        return False
            with suppress(KeyMissing):  # what was there was deleted meanwhile, so the key is free
                # the client retries a request whose answer was lost: then what exists is what this call has written
                return self.read(key) == data
        raise StoreUnavailable(f"cannot write {key}: others create and delete it all the time")

    def replace(self, key: str, data: bytes) -> None:
        """See Store."""
        with _translate_errors("write", key):
            obstore.put(self._client, check_key(key), data, use_multipart=False)

    def read(self, key: str) -> bytes:
        """See Store."""
        with _translate_errors("read", key):
            return bytes(obstore.get(self._client, check_key(key)).bytes())

    def exists(self, key: str) -> bool:
        """See Store."""
        try:
            with _translate_errors("read", key):
                obstore.head(self._client, check_key(key))
        except KeyMissing:
            return False
        return True

    def children(self, prefix: str, after: str | None = None) -> list[str]:
        """See Store."""
        if after is not None:
            names: set[str] = set()
            # a listing that begins somewhere has all keys below its names, so it is for the last few of many names
            with _translate_errors("list", prefix):
                for entries in obstore.list(
                    self._client, check_key(prefix), offset=f"{prefix}/{after}", chunk_size=1000
                ):
                    names.update(entry["path"].removeprefix(f"{prefix}/").partition("/")[0] for entry in entries)
            return keys_among(name for name in names if name > after)
        with _translate_errors("list", prefix):
            found = obstore.list_with_delimiter(self._client, check_key(prefix))
        paths = [*found["common_prefixes"], *(entry["path"] for entry in found["objects"])]
        return keys_among(path.rstrip("/").rpartition("/")[2] for path in paths)

    def delete(self, prefix: str) -> None:
        """See Store. Keys below the prefix go first, so that a deletion that was cut short can be repeated."""
        with _translate_errors("delete", prefix):
            for entries in obstore.list(self._client, check_key(prefix) + "/"):
                self._remove([entry["path"] for entry in entries])
            self._remove([prefix])

    def upload(self, key: str, path: Path) -> File:
        """See Store."""
        with _translate_errors("write", key):
            digest, size = sha256_of(path)
            obstore.put(self._client, check_key(key), path, max_concurrency=_UPLOADED_PARTS)
            file = File(key=key, sha256=digest, bytes=size)
            self._cache.adopt(file, path)
        return file

    def local(self, file: File) -> Path:
        """See Store. Fetched at most once while it stays in the cache."""
        try:
            with _translate_errors("read", file.key):
                path = self._cache.path(file, self._fetch)
        except StoreDamaged as error:
            raise self.damage.add(error, lambda: self.local(file)) from None
        self.damage.forget(file.key)
        return path

    def writable(self) -> bool:
        """See Store."""
        try:
            self.replace(_PROBE, b"?")
        except StoreUnavailable:
            return False
        return True

    def free(self) -> int | None:
        """See Store."""
        return None

    def _fetch(self, file: File, path: Path) -> None:
        """Append the missing rest to a file.

        A connection that breaks, or is silent, is resumed at the byte that was reached.
        """
        failures = 0
        with path.open("ab") as local:
            while True:
                before = local.tell()
                try:
                    self._append(file, local)
                    return
                except NotFoundError:
                    raise
                except BaseError:
                    failures = 1 if local.tell() > before else failures + 1
                    if failures == _FETCH_TRIES:
                        raise
                    time.sleep(_FETCH_PAUSE_SECONDS)

    def _append(self, file: File, local: BinaryIO) -> None:
        if local.tell() >= file.bytes:
            return
        found = obstore.get(self._files, check_key(file.key), options={"range": {"offset": local.tell()}})
        for piece in found.stream(min_chunk_size=_PIECE_BYTES):
            local.write(piece)
            report_fetched(file, local.tell())

    def _remove(self, keys: list[str]) -> None:
        try:
            obstore.delete(self._client, keys)
        except (NotFoundError, FileNotFoundError):
            return


@contextmanager
def _translate_errors(verb: str, key: str) -> Iterator[None]:
    """Raise KeyMissing or StoreUnavailable for refusals of the bucket or the local disk, UsedBeforeFork where the
    client would wait for ever.
    """
    note_use()
    with translate_os_errors(verb, key):
        try:
            yield
        except (NotFoundError, FileNotFoundError):
            raise KeyMissing(key) from None
        except BaseError as error:
            told, _, _ = str(error).partition("\n\n")  # the rest is for those who debug the client
            raise StoreUnavailable(f"cannot {verb} {key}: {told}") from error


_FETCHES = 2
"""Times that a file is fetched until its bytes count as damaged in the store, and not on the way."""
_LOCKS = 16


class FileCache:
    """Copies in ``folder``, of at most ``limit`` bytes together, shared by any number of processes.

    The name of a copy is its checksum, which it gets when it is whole and verified. A process that has mapped a copy
    can read it after its removal.
    """

    def __init__(self, folder: Path, limit: int, own_folder: Callable[[], Path]) -> None:
        self._folder = folder
        self._limit = limit
        self._own_folder = own_folder
        self._locks = [threading.Lock() for _ in range(_LOCKS)]

    def path(self, file: File, fetch: Callable[[File, Path], None]) -> Path:
        """Path of the local copy. ``fetch`` appends the missing rest to a file: bytes fetched before it failed are kept
        for the next time.

        Raises StoreDamaged if what was fetched, twice, is not what was stored.
        """
        copy = self._folder / file.sha256
        # one thread of this process fetches a file, and the others wait for it
        with self._locks[int(file.sha256[:2], 16) % len(self._locks)]:
            try:
                os.utime(copy)
            except FileNotFoundError:
                self._fetch(file, fetch)
        return copy

    def _fetch(self, file: File, fetch: Callable[[File, Path], None]) -> None:
        partial = self._own_folder() / f"{file.sha256}.partial"
        for _ in range(_FETCHES):
            fetch(file, partial)
            if sha256_of(partial) == (file.sha256, file.bytes):
                self.adopt(file, partial)
                return
            partial.unlink()
        raise StoreDamaged(file.key)

    def adopt(self, file: File, path: Path) -> None:
        """Move a local file, which is known to be ``file``, into the cache."""
        self._folder.mkdir(parents=True, exist_ok=True)
        staged = self._own_folder() / f"adopt-{file.sha256}"
        if path.stat().st_dev != self._folder.stat().st_dev:
            shutil.move(path, staged)
            path = staged
        os.replace(path, self._folder / file.sha256)
        self._evict(keep=file.sha256)

    def _evict(self, keep: str) -> None:
        """Remove the least recently used copies until the rest fit, but never ``keep``."""
        copies = []
        for entry in os.scandir(self._folder):
            try:
                stat = entry.stat()
            except FileNotFoundError:
                continue
            copies.append((stat.st_mtime, stat.st_size, entry.name))
        total = sum(size for _, size, _ in copies)
        for _, size, name in sorted(copies):
            if total <= self._limit:
                return
            if name != keep:
                (self._folder / name).unlink(missing_ok=True)
                total -= size
