"""Errors of the operating system in words of the domain: StoreUnavailable, and StoreFull where there is no room."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from workers.errors import StoreFull, StoreUnavailable

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def translate_os_errors(verb: str, what: str) -> Iterator[None]:
    """Raise StoreUnavailable, or StoreFull, for any OSError inside the block or the function that this decorates: "cannot {verb} {what}: …"."""
    try:
        yield
    except OSError as error:
        kind = StoreFull if error.errno in _FULL else StoreUnavailable
        raise kind(f"cannot {verb} {what}: {error.strerror or error}") from error
