"""Temporary files that are sent."""

import asyncio
from collections.abc import AsyncIterator
from typing import IO

_BLOCK_BYTES = 1 << 18


async def iter_file(file: IO[bytes]) -> AsyncIterator[bytes]:
    """The blocks of a file, which is closed at the end, also of a request that is cancelled."""
    try:
        while block := await asyncio.to_thread(file.read, _BLOCK_BYTES):
            yield block
    finally:
        file.close()
