"""Local files of a store: errors of the operating system, checksums, and the progress of fetching."""

import errno
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from storage.errors import StoreFull, StoreUnavailable
from storage.records import File

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def translate_os_errors(verb: str, what: str) -> Iterator[None]:
    """Raise StoreUnavailable, or StoreFull, for any OSError inside the block or the function that this decorates:
    "cannot {verb} {what}: …".
    """
    try:
        yield
    except OSError as error:
        kind = StoreFull if error.errno in _FULL else StoreUnavailable
        raise kind(f"cannot {verb} {what}: {error.strerror or error}") from error


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
