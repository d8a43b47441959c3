"""What the operating system refuses, in words of the domain."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from workers.errors import StoreFull, StoreUnavailable

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def disk(verb: str, what: str) -> Iterator[None]:
    """An OSError inside the block (or the function that this decorates) becomes StoreUnavailable, StoreFull where room is what is missing."""
    try:
        yield
    except OSError as error:
        kind = StoreFull if error.errno in _FULL else StoreUnavailable
        raise kind(f"cannot {verb} {what}: {error.strerror or error}") from error
