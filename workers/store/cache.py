"""LRU cache of local copies of stored files, under their checksums."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from workers.contract import File
from workers.errors import StoreDamaged
from workers.store.digest import sha256_of
from workers.store.staging import Staging


class FileCache:
    """Copies in ``folder``, of at most ``limit`` bytes together, shared by any number of processes.

    The name of a copy is its checksum, which it gets when it is whole and verified. A process that has mapped a copy can read it after its removal.
    """

    def __init__(self, folder: Path, limit: int, staging: Staging) -> None:
        self._folder = folder
        self._limit = limit
        self._staging = staging

    def path(self, file: File, fetch: Callable[[File, Path], None]) -> Path:
        """Path of the local copy, which is fetched if it is missing; raises StoreDamaged if what was fetched is not what was stored."""
        copy = self._folder / file.sha256
        try:
            os.utime(copy)
        except FileNotFoundError:
            fetched = self._staging.fresh() / "file"
            try:
                fetch(file, fetched)
                if sha256_of(fetched) != (file.sha256, file.bytes):
                    raise StoreDamaged(file.key)
                self.adopt(file, fetched)
            finally:
                fetched.unlink(missing_ok=True)
                fetched.parent.rmdir()
        return copy

    def adopt(self, file: File, path: Path) -> None:
        """Move a local file, which is known to be ``file``, into the cache."""
        self._folder.mkdir(parents=True, exist_ok=True)
        staged = self._staging.folder() / f"adopt-{file.sha256}"
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
