"""The store in a folder of a local, or shared POSIX, file system.

A write takes four steps, so that a crash at any point leaves either nothing or the whole:

1. The data go to a temporary file in the same file system.
2. The file is flushed to the disk (``fsync``).
3. It gets its name in one step: by ``link`` when the name must be new, by ``rename`` when it may exist.
4. The folder is flushed.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG

from storage.errors import StoreDamaged, StoreUnavailable, translate_os_errors
from storage.recent import Recent
from storage.records import File
from storage.store.keys import KeyMissing, check_key, keys_among
from storage.store.local_files import Staged, sha256_of

_MAX_VERIFIED = 10_000
"""Number of files that a process remembers as verified, so that it reads each once."""


class FolderStore(Staged):
    """A Store below ``root``; its staging area is the hidden folder ``.staging`` there."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        super().__init__(self._root / ".staging")
        self._verified: Recent[tuple[str, str], tuple[int, int]] = Recent(_MAX_VERIFIED)

    def create(self, key: str, data: bytes) -> bool:
        """See Store."""
        path = self._path(key)
        with translate_os_errors("write", key), self._written(data) as temporary:
            self._make_folder(path.parent)
            try:
                os.link(temporary, path)
            except FileExistsError:
                # the first writer may not have flushed the folder yet, and the caller will rely on what it reads
                _flush_folder(path.parent)
                # a network file system repeats a call whose reply was lost: then it was this one that made the second
                # link
                return temporary.stat().st_nlink > 1
            _flush_folder(path.parent)
            return True

    def replace(self, key: str, data: bytes) -> None:
        """See Store."""
        path = self._path(key)
        with translate_os_errors("write", key), self._written(data) as temporary:
            self._rename(temporary, path)

    def read(self, key: str) -> bytes:
        """See Store."""
        with translate_os_errors("read", key):
            try:
                return self._path(key).read_bytes()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                raise KeyMissing(key) from None
            except PermissionError as error:
                if not os.access(self._path(key).parent, os.X_OK):  # then it is not this file alone
                    raise
                raise StoreDamaged(key, f"it cannot be read: {error.strerror}") from None

    def exists(self, key: str) -> bool:
        """See Store."""
        with translate_os_errors("read", key):
            try:
                return S_ISREG(self._path(key).stat().st_mode)
            except (FileNotFoundError, NotADirectoryError):
                return False

    def children(self, prefix: str, after: str | None = None) -> list[str]:
        """See Store."""
        with translate_os_errors("list", prefix):
            try:
                names = os.listdir(self._path(prefix))
                return keys_among(names if after is None else (name for name in names if name > after))
            except (FileNotFoundError, NotADirectoryError):
                return []

    def delete(self, prefix: str) -> None:
        """See Store. A folder disappears in one step: it is moved aside, then removed."""
        path = self._path(prefix)
        with translate_os_errors("delete", prefix):
            aside = self.own_folder() / secrets.token_hex(8)
            try:
                os.rename(path, aside)
            except (FileNotFoundError, NotADirectoryError):
                return
            _flush_folder(path.parent)
            if aside.is_dir():
                shutil.rmtree(aside)
            else:
                aside.unlink()

    def upload(self, key: str, path: Path) -> File:
        """See Store. A file of the staging area is moved, not copied.

        Nobody may write it any more: a file that is cut while it is memory-mapped ends the process that reads it.
        """
        target = self._path(key)
        with translate_os_errors("write", key):
            digest, size = sha256_of(path)
            with path.open("rb") as opened:
                os.fsync(opened.fileno())
            self._rename(path, target)
            with suppress(OSError):  # a file system without modes
                target.chmod(target.stat().st_mode & ~0o222)
            self._verified[key, digest] = _version(target)
        return File(key=key, sha256=digest, bytes=size)

    def local(self, file: File) -> Path:
        """See Store. The file itself; each process verifies its checksum once, and again where it was written since."""
        path = self._path(file.key)
        with translate_os_errors("read", file.key):
            try:
                version = _version(path)
                if self._verified.get((file.key, file.sha256)) == version:
                    return path
                digest, size = sha256_of(path)
            except (FileNotFoundError, NotADirectoryError):
                raise KeyMissing(file.key) from None
        if (digest, size) != (file.sha256, file.bytes):
            raise self.damage.add(StoreDamaged(file.key), lambda: self.local(file))
        self.damage.forget(file.key)
        self._verified[file.key, file.sha256] = version
        return path

    def writable(self) -> bool:
        """See Store."""
        try:
            with translate_os_errors("write", "a probe"), self._written(b"?"):
                return True
        except StoreUnavailable:
            return False

    @translate_os_errors("read", "the file system")
    def free(self) -> int | None:
        """See Store."""
        try:
            return shutil.disk_usage(self._root).free
        except FileNotFoundError:  # nothing was written yet
            return None

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    @contextmanager
    def _written(self, data: bytes) -> Iterator[Path]:
        """A temporary file that holds ``data`` durably."""
        temporary = self.own_folder() / secrets.token_hex(8)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)

    def _rename(self, source: Path, target: Path) -> None:
        self._make_folder(target.parent)
        try:
            os.rename(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            copy = self.own_folder() / secrets.token_hex(8)
            shutil.copyfile(source, copy)
            with copy.open("rb") as opened:
                os.fsync(opened.fileno())
            os.rename(copy, target)
            source.unlink()
        _flush_folder(target.parent)

    def _make_folder(self, folder: Path) -> None:
        """Create a folder and those above it, each durably."""
        if folder.is_dir():
            return
        if folder != self._root:
            self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True, parents=folder == self._root)
        _flush_folder(folder.parent)


def _version(path: Path) -> tuple[int, int]:
    """When a file was written last, and its bytes: a file with another version has another content, as a rule."""
    found = path.stat()
    return found.st_mtime_ns, found.st_size


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
