"""Staging: a folder for the unfinished files of each process, which any other process can remove after its death.

A process holds a lock on ``{name}.lock`` beside its folder ``{name}`` for as long as it lives; the system releases it however the process ends. The
folder may be removed by any process that can take the lock. So no clock and no process id is trusted.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
import threading
from pathlib import Path

from workers.store.damage import Damage
from workers.store.os_errors import translate_os_errors


class Staging:
    """Staging area below ``root``, shared by any number of processes on one machine. Its methods raise StoreUnavailable."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._guard = threading.Lock()
        self._owner = 0
        self._lock = -1
        self._folder = root

    @translate_os_errors("write", "the staging area")
    def folder(self) -> Path:
        """The folder of this process; a forked child gets a new one."""
        with self._guard:
            if self._owner != os.getpid():
                self._lock, self._folder = _claim(self._root)
                self._owner = os.getpid()
            return self._folder

    @translate_os_errors("write", "the staging area")
    def fresh(self) -> Path:
        """A new, empty folder within that of this process."""
        return Path(tempfile.mkdtemp(dir=self.folder()))

    @translate_os_errors("write", "the staging area")
    def remove_abandoned(self) -> None:
        """Remove the folders of processes that have died."""
        if not self._root.is_dir():
            return
        names = {entry.name.removesuffix(".lock") for entry in os.scandir(self._root)}
        for name in names:
            _remove_if_abandoned(self._root, name)


class Staged:
    """Part of a Store that is the same for a folder and a bucket."""

    def __init__(self, staging: Staging) -> None:
        self.damage = Damage()
        self._staging = staging

    def staging(self) -> Path:
        """See Store."""
        return self._staging.fresh()

    def remove_abandoned(self) -> None:
        """See Store."""
        self._staging.remove_abandoned()


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
