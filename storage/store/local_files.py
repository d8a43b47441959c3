"""Local files of a store: checksums, the progress of fetching, and staging.

Staging is a folder for the unfinished files of each process, which any other process can remove after its death. A
process holds a lock on ``{name}.lock`` beside its folder ``{name}`` for as long as it lives; the system releases it
however the process ends. The folder may be removed by any process that can take the lock. So no clock and no process id
is trusted.
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from storage.errors import translate_os_errors
from storage.records import File
from storage.store.keys import Damage


def sha256_of(path: Path) -> tuple[str, int]:
    """SHA-256 of a file, in hexadecimal, and its size in bytes. The file is read in blocks."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return digest.hexdigest(), file.tell()


Report = Callable[[File, int], None]
"""Function of a file and the bytes of it that are there. It may raise what ends the fetching; what was fetched is then
kept for the next time."""
_report: ContextVar[Report | None] = ContextVar("report", default=None)


@contextmanager
def reported_to(report: Report) -> Iterator[None]:
    """Report the progress of files that are fetched inside the block."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


def report_fetched(file: File, n_bytes: int) -> None:
    """Report that so many bytes of a file are there."""
    report = _report.get()
    if report is not None:
        report(file, n_bytes)


class Staged:
    """A Store with a staging area below ``staging``, shared by any number of processes on one machine.

    What is staged raises StoreUnavailable.
    """

    def __init__(self, staging: Path) -> None:
        self.damage = Damage()
        self._staging = staging
        self._guard = threading.Lock()
        self._owner = 0
        self._lock = -1
        self._own = staging

    @translate_os_errors("write", "the staging area")
    def own_folder(self) -> Path:
        """The folder of this process; a forked child gets a new one."""
        with self._guard:
            if self._owner != os.getpid():
                self._lock, self._own = _claim(self._staging)
                self._owner = os.getpid()
            return self._own

    @translate_os_errors("write", "the staging area")
    def staging(self) -> Path:
        """See Store."""
        return Path(tempfile.mkdtemp(dir=self.own_folder()))

    @translate_os_errors("write", "the staging area")
    def remove_abandoned(self) -> None:
        """See Store."""
        if not self._staging.is_dir():
            return
        for name in {entry.name.removesuffix(".lock") for entry in os.scandir(self._staging)}:
            _remove_if_abandoned(self._staging, name)


def _claim(root: Path) -> tuple[int, Path]:
    root.mkdir(parents=True, exist_ok=True)
    while True:
        folder = root / secrets.token_hex(8)
        path = folder.with_suffix(".lock")
        lock = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        if _take(lock) and path.exists():
            folder.mkdir()
            return lock, folder
        # another process took it for abandoned between the creation of the lock file and its locking
        os.close(lock)


def _take(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_if_abandoned(root: Path, name: str) -> None:
    path = root / f"{name}.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        shutil.rmtree(root / name, ignore_errors=True)
        return
    try:
        if _take(lock):
            shutil.rmtree(root / name, ignore_errors=True)
            path.unlink(missing_ok=True)
    finally:
        os.close(lock)
