"""The store, which holds everything that must not be lost: one small interface, over a folder or an S3-compatible
bucket.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from storage.records import File
from storage.store.keys import Damage, KeyMissing, check_key

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

__all__ = ["KeyMissing", "Store", "check_key", "open_raw", "open_store", "staging_folder"]


class Store(Protocol):
    """Bytes under keys such as ``jobs/job-1/request.json``. A write is durable when its method returns.

    All other guarantees rest on two of its calls: ``create``, of which one writer of many succeeds, and ``replace``,
    which is atomic. Raises StoreUnavailable when the store cannot be reached or written, ValueError for an invalid key.
    """

    damage: Damage
    """what of it this process could not read"""

    def create(self, key: str, data: bytes) -> bool:
        """Store ``data`` under a new key.

        If the key exists, return false and change nothing: of many writers one gets true.
        """

    def replace(self, key: str, data: bytes) -> None:
        """Store ``data`` under a key, new or not. Readers see the old or the new bytes, never a mixture."""

    def read(self, key: str) -> bytes:
        """The bytes under a key; raises KeyMissing, and StoreDamaged where these bytes alone cannot be read."""

    def exists(self, key: str) -> bool:
        """Whether something is stored under exactly this key."""

    def children(self, prefix: str, after: str | None = None) -> list[str]:
        """Names one level below a prefix (without a slash at its end), sorted; empty if there are none. Names that
        cannot be keys are left out.

        With ``after`` only names that come later: of many, the last ones cost a bucket little.
        """

    def delete(self, prefix: str) -> None:
        """Delete all that is stored under this key and below it; no error if there is nothing."""

    def upload(self, key: str, path: Path) -> File:
        """Move a local file into the store, under a key; returns its record, with its checksum."""

    def local(self, file: File) -> Path:
        """Path of a local, read-only copy that may be memory-mapped, with its checksum verified.

        Raises KeyMissing, StoreDamaged.
        """

    def staging(self) -> Path:
        """A new, empty folder for files that will be uploaded.

        ``remove_abandoned`` removes it after the death of its process.
        """

    def remove_abandoned(self) -> None:
        """Remove the staging folders of processes that have died."""

    def writable(self) -> bool:
        """Whether the store can be written now."""

    def free(self) -> int | None:
        """Bytes that are free; None where this is unknown."""


def open_store(
    url: str, cache: Path | None = None, *, cache_bytes: int = 20 * 2**30, options: Mapping[str, str] | None = None
) -> Store:
    """The store at ``file:///folder`` or ``s3://bucket/prefix``.

    ``cache`` is the folder for local copies of the files of a bucket. ``options`` configure its client (``endpoint``,
    ``region``, … as obstore names them); by default the AWS_… variables do. Raises ValueError for any other address.
    """
    folder = _folder(url)
    if folder is not None:
        from storage.store.folder import FolderStore

        return FolderStore(folder)
    from storage.store.bucket import open_s3

    return open_s3(url, cache, cache_bytes, options or {})


@contextmanager
def staging_folder(store: Store) -> Iterator[Path]:
    """A new, empty folder of the staging area, which is removed after the block."""
    folder = store.staging()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_raw(url: str, options: Mapping[str, str] | None = None) -> "Client":
    """A client of the keys and bytes at this address, without the guarantees of a store, for copies of all of it.

    Raises as ``open_store``.
    """
    folder = _folder(url)
    if folder is not None:
        from obstore.store import LocalStore

        return LocalStore(folder, automatic_cleanup=True, mkdir=True)
    from storage.store.bucket import client_of

    return client_of(url, options or {})


def _folder(url: str) -> Path | None:
    """The folder that an address names, None for a bucket; raises ValueError for anything else."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return Path(unquote(parts.path))
    if parts.scheme == "s3" and parts.netloc:
        return None
    raise ValueError(f"store address {url!r}: must be file:///folder or s3://bucket/prefix")
