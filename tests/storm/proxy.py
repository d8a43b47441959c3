"""Proxies in a thread that pass TCP connections on; one between the service and its Valkey can cut the two off."""

import asyncio
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Self

import uvloop

_BLOCK = 1 << 16
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Relay(ABC):
    """A context manager that listens on a free port of this machine, in a thread, and passes connections on.

    It knows nothing of what is sent.
    """

    def __init__(self) -> None:
        self._loop = uvloop.new_event_loop()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)
        self.port: int = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @abstractmethod
    async def _opened(self) -> Streams:
        """The streams to which a new connection is passed on; raises OSError where nobody takes it."""

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
            answers, questions = await self._opened()
            await asyncio.gather(self._pump(reader, questions), self._pump(answers, writer))
        except OSError:
            pass  # nobody takes it, or either side has left: the other is told by the closing
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


class Cut(StrEnum):
    """Fate of connections meanwhile."""

    REFUSED = "refused"
    """they are closed, old and new: as when the server is not there"""
    SILENT = "silent"
    """nothing comes through any more and nobody is told: as when a cable is pulled"""


class Proxy(Relay):
    """A relay to the unix socket of a Valkey, which can be cut off."""

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._target = target
        self._cut: Cut | None = None
        self.url = f"redis://127.0.0.1:{self.port}/0"

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

    async def _opened(self) -> Streams:
        if self._cut is Cut.REFUSED:
            raise ConnectionRefusedError
        return await asyncio.open_unix_connection(str(self._target))

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
