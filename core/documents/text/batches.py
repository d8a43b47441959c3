"""Batches of texts that threads read side by side."""

from collections.abc import Callable, Iterator
from itertools import islice

from core.documents.kinds import TextRows, spans
from core.threads import Threads

TextCheckpoint = Callable[[float, int], None]
"""Callback between slices of work: takes the share that is done and the bytes of memory that are held; what it raises
ends the work."""
SPAN_ROWS, SPAN_BYTES = 4096, 1 << 18
"""bounds on texts that a thread reads at once, in some milliseconds"""
_SPANS_A_THREAD = 4
"""spans of a batch, for each thread: at its end the threads wait for one another"""
_SERIAL = 1 << 18
"""bytes of text below which threads cost more than they gain"""


def threads_for(texts: TextRows, threads: int | None) -> Threads:
    """The threads that read these texts; to be closed."""
    return Threads(1 if texts.indptr[-1] - texts.indptr[0] < _SERIAL else threads)


def batches(texts: TextRows, n_threads: int) -> Iterator[list[tuple[int, int]]]:
    """Spans of texts in order, as many at a time as are read side by side."""
    left = spans(texts.indptr, SPAN_ROWS, SPAN_BYTES)
    while batch := list(islice(left, _SPANS_A_THREAD * n_threads)):
        yield batch
