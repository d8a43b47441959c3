"""Local copies of stored files, under their checksums, the least recently used removed when they take too much room."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from workers.contract import File
from workers.errors import StoreDamaged
from workers.store.digest import sha256_of
from workers.store.staging import Staging


class FileCache:
    """Copies in ``folder``, of at most ``limit`` bytes together; shared by any number of processes.

    A copy's name is its checksum, and it gets the name when it is whole and verified. One that is removed while somebody has it mapped lives on
    for them.
    """

    def __init__(self, folder: Path, limit: int, staging: Staging) -> None:
        self._folder = folder
        self._limit = limit
        self._staging = staging

    def path(self, file: File, fetch: Callable[[File, Path], None]) -> Path:
        """The local copy, fetched if need be; raises StoreDamaged if what was fetched is not what was stored."""
        kept = self._folder / file.sha256
        try:
            os.utime(kept)
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
        return kept

    def adopt(self, file: File, path: Path) -> None:
        """Take a local file, known to be what ``file`` says, as the copy; it is moved."""
        self._folder.mkdir(parents=True, exist_ok=True)
        staged = self._staging.folder() / f"adopt-{file.sha256}"
        if path.stat().st_dev != self._folder.stat().st_dev:
            shutil.move(path, staged)
            path = staged
        os.replace(path, self._folder / file.sha256)
        self._trim(keep=file.sha256)

    def _trim(self, keep: str) -> None:
        """Remove the copies not used for longest until the rest fit, but never the one that was just asked for."""
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
