"""Progress of fetching files of a bucket, for whoever waits for them in the same context."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from workers.contract import File

Report = Callable[[File, int], None]
"""Function of a file and the bytes of it that are there. It may raise what ends the fetching; what was fetched is then kept for the next time."""
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
