"""Temporary files: bodies that are kept until their end, and answers that are written whole before they are sent."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from storage.store import Store
from storage.store.local_files import translate_os_errors

_BLOCK_BYTES = 1 << 18


@contextmanager
def temporary_file(store: Store) -> Iterator[IO[bytes]]:
    """An unnamed file on the file system of the staging area.

    It disappears when it is closed or the process ends. Raises StoreUnavailable.
    """
    file = _open(store)
    try:
        yield file
    finally:
        # what is still buffered need not reach a disk that is full
        with suppress(OSError):
            file.close()


@translate_os_errors("write", "a file to send")
def written_file(store: Store, write: Callable[[IO[bytes]], None]) -> IO[bytes]:
    """A temporary file that ``write`` has written, for ``iter_file``.

    Raises StoreUnavailable, and what ``write`` raises.
    """
    file = _open(store)
    try:
        write(file)
        file.seek(0)
    except BaseException:
        with suppress(OSError):
            file.close()
        raise
    return file


async def iter_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    """The blocks of a file, which is closed at the end, also of a request that is cancelled."""
    try:
        while block := await asyncio.to_thread(file.read, _BLOCK_BYTES):
            yield block
    finally:
        file.close()


@translate_os_errors("make", "a temporary file")
def _open(store: Store) -> IO[bytes]:
    # not in the folder of the system, which may be memory
    folder = store.staging()
    try:
        return tempfile.TemporaryFile(dir=folder)
    finally:
        folder.rmdir()
