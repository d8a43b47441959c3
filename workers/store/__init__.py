"""Where everything that must not be lost lies: one small interface, over a folder or an S3-compatible service."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from workers.contract import File
from workers.store.keys import KeyMissing, check_key

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

__all__ = ["KeyMissing", "Store", "check_key", "open_raw", "open_store"]


class Store(Protocol):
    """Bytes under keys (``jobs/job-1/request.json``). Whatever returns without raising is durable.

    Raises StoreUnavailable when the store cannot be reached or written, ValueError for a key that is not one.
    """

    def create(self, key: str, data: bytes) -> bool:
        """Store ``data`` under a new key; false, and nothing changed, if the key exists: of many writers exactly one gets true."""
        ...

    def replace(self, key: str, data: bytes) -> None:
        """Store ``data`` under a key, new or not; readers see the old or the new bytes, never a mixture."""
        ...

    def read(self, key: str) -> bytes:
        """The bytes under a key; raises KeyMissing."""
        ...

    def exists(self, key: str) -> bool:
        """Whether something is stored under exactly this key."""
        ...

    def children(self, prefix: str) -> list[str]:
        """Names one level below a prefix (given without a slash at its end), sorted; empty if there are none."""
        ...

    def delete(self, prefix: str) -> None:
        """Remove what is stored under this key and below it; no error if there is nothing."""
        ...

    def upload(self, key: str, path: Path) -> File:
        """Store a local file under a key and remove it locally; the result names and checks it from now on."""
        ...

    def local(self, file: File) -> Path:
        """A local, read-only copy that may be memory-mapped; its checksum was verified. Raises KeyMissing, StoreDamaged."""
        ...

    def staging(self) -> Path:
        """A new, empty folder for files that will be uploaded. ``remove_abandoned`` removes it after the death of its process."""
        ...

    def remove_abandoned(self) -> None:
        """Remove the staging folders of processes that have died."""
        ...

    def writable(self) -> bool:
        """Whether something can be written now."""
        ...

    def free(self) -> int | None:
        """Bytes that there is still room for; None where nobody knows."""
        ...


def open_store(url: str, cache: Path | None = None, *, cache_bytes: int = 20 * 2**30, options: Mapping[str, str] | None = None) -> Store:
    """The store at ``file:///folder`` or ``s3://bucket/prefix``.

    ``cache`` is where files of an object store are kept locally, ``options`` configure its client (``endpoint``, ``region``, … as obstore names
    them; by default the AWS_… variables do). Raises ValueError for any other address.
    """
    folder = _folder(url)
    if folder is not None:
        from workers.store.folder import FolderStore

        return FolderStore(folder)
    from workers.store.bucket import open_s3

    return open_s3(url, cache, cache_bytes, options or {})


def open_raw(url: str, options: Mapping[str, str] | None = None) -> "Client":
    """The keys and bytes of the store at this address, without what a store promises: to copy them all. Raises ValueError as ``open_store``."""
    folder = _folder(url)
    if folder is not None:
        from obstore.store import LocalStore

        return LocalStore(folder, automatic_cleanup=True, mkdir=True)
    from workers.store.bucket import client_of

    return client_of(url, options or {})


def _folder(url: str) -> Path | None:
    """The folder that an address names, None if it is a bucket; raises ValueError for anything else."""
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return Path(unquote(parts.path))
    if parts.scheme == "s3" and parts.netloc:
        return None
    raise ValueError(f"store address {url!r}: must be file:///folder or s3://bucket/prefix")
