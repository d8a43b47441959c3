"""A proxy before several gateways: each connection goes to the next one that takes it, as a Kubernetes service does.

It knows nothing of HTTP.
"""

import asyncio
import socket
import threading
from contextlib import suppress
from typing import Self

import uvloop

_BLOCK = 1 << 16


class Balancer:
    """A context manager; listens on a free port of this machine, in a thread.

    Targets are ports, which may be added and removed at any time.
    """

    def __init__(self) -> None:
        self._targets: list[int] = []
        self._next = 0
        self._loop = uvloop.new_event_loop()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._thread = threading.Thread(target=self._run, name="balancer", daemon=True)
        self.port = self._listening.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def add(self, port: int) -> None:
        """Send new connections to this port, too."""
        self._targets = [*self._targets, port]

    def remove(self, port: int) -> None:
        """Send no new connection to this port; those that are open stay."""
        self._targets = [each for each in self._targets if each != port]

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
        targets = self._targets
        self._next += 1
        for turn in range(len(targets)):
            with suppress(OSError):
                answers, questions = await asyncio.open_connection(
                    "127.0.0.1", targets[(self._next + turn) % len(targets)]
                )
                await asyncio.gather(_pump(reader, questions), _pump(answers, writer))
                return
        writer.close()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_BLOCK):
            target.write(data)
            await target.drain()
    except OSError:
        pass  # either side has left: the other is told by the closing
    finally:
        with suppress(OSError):
            target.close()
