"""A TCP proxy between the service and its Valkey that can cut the two off from each other."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Self

_BLOCK = 1 << 16


class Cut(StrEnum):
    """What becomes of connections meanwhile."""

    REFUSED = "refused"
    """they are closed, old and new: as when the server is not there"""
    SILENT = "silent"
    """nothing comes through any more and nobody is told: as when a cable is pulled"""


class Proxy:
    """A context manager; listens on a free port of this machine, in a thread, and passes everything on to a unix
    socket.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._cut: Cut | None = None
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self.url = f"redis://127.0.0.1:{self._listening.getsockname()[1]}/0"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def away(self) -> bool:
        """Whether the service is cut off now."""
        return self._cut is not None

    @contextmanager
    def cut(self, how: Cut) -> Iterator[None]:
        """Nothing comes through inside the block."""
        self._do(how)
        try:
            yield
        finally:
            self._do(None)

    def _do(self, cut: Cut | None) -> None:
        done = threading.Event()

        def change() -> None:
            self._cut = cut
            if cut is Cut.REFUSED:
                for writer in self._writers:
                    writer.close()
            if cut is Cut.SILENT:
                self._flowing.clear()
            else:
                self._flowing.set()
            done.set()

        self._loop.call_soon_threadsafe(change)
        done.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._connected, sock=self._listening))
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._flowing.wait()
        try:
            if self._cut is not Cut.REFUSED:
                answers, questions = await asyncio.open_unix_connection(str(self._target))
                await asyncio.gather(self._pump(reader, questions), self._pump(answers, writer))
        except OSError:
            pass  # Valkey is not there, or either side has left: the other is told by the closing
        finally:
            writer.close()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        self._writers.add(target)
        try:
            while data := await source.read(_BLOCK):
                await self._flowing.wait()
                target.write(data)
                await target.drain()
        finally:
            self._writers.discard(target)
            with suppress(OSError):
                target.close()
