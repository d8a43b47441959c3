"""LRU cache of local copies of stored files, under their checksums."""

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from storage.errors import StoreDamaged
from storage.records import File
from storage.store.local_files import sha256_of

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
