"""The gateway process: uvicorn, its signals, its memory and its open files."""

import ctypes
import gc
import resource
import signal
import socket
import sys

import structlog
import uvicorn

from app.http.sockets.connection import Connection
from app.http.sockets.listener import Processes, check_exposure, listen
from app.main import create_app
from app.services.admission import Admission
from app.settings import GatewaySettings
from storage.process.logs import configure_logging
from storage.process.tracing import tracing, wanted
from storage.queue.connection import connect
from storage.store import open_store

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
SHUTDOWN_TIMEOUT_SECONDS = 10
"""Seconds that open requests, event streams among them, have to end after a signal to stop."""

SWITCH_SECONDS = 0.001
"""Seconds for which a thread that parses may keep the interpreter when others wait. A small request needs it some ten
times, and Python's default of 5 ms makes that 50."""
GARBAGE_THRESHOLDS = 5_000, 100
"""New lists, dicts and the like after which Python looks for garbage among them, and the number of such looks after
which it looks among those that were kept, too.

A block of documents has up to 35,000, all alive while it is parsed: with 700 and 10, the default, looking takes a
quarter of the time and holds the interpreter for up to 20 ms. What small requests leave takes 1.5 ms a thousand to
free, so there must not be many more. Looking at those that were kept takes 75 ms for each million, which a body of
labels may have.
"""
TRIM_THRESHOLD_BYTES = 16 << 20
"""Freed memory that malloc keeps for the next body."""
MMAP_THRESHOLD_BYTES = 4 << 20
"""Size from which malloc maps a block on its own."""
ARENAS = 2
"""Heaps that all threads share. By default nearly every thread has its own heap, whose free memory no other thread can
use."""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt, by their numbers in <malloc.h> of glibc."""


class GatewayServer(uvicorn.Server):
    """The server of uvicorn, which loses no request when it stops, as long as another process listens on the same
    socket.

    New connections go to the other. On those that are open, whatever comes is answered, with ``Connection: close``; see
    ``Connection.shutdown``.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listening socket, answer requests on open connections, and end."""
        self.server_state.default_headers = [*self.server_state.default_headers, (b"connection", b"close")]
        await super().shutdown(sockets)


def serve(settings: GatewaySettings, descriptor: int | None = None, processes: Processes | None = None) -> int:
    """Serve until SIGINT or SIGTERM; returns the exit code. ``descriptor`` is a listening socket to use in place of
    host and port.

    ``processes`` are those that listen on this socket, too.

    Raises CannotStart where the settings do not say who may call, the port is taken, or the store must not be used.
    """
    if descriptor is None:
        check_exposure(settings.access, settings.host)
    with listen(settings.host, settings.port) if descriptor is None else socket.socket(fileno=descriptor) as listener:
        check_exposure(settings.access, listener.getsockname()[0])
        configure_logging(settings.log_format, settings.log_level)
        sys.setswitchinterval(SWITCH_SECONDS)
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        _tune_malloc()
        # every connection is an open file
        _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
        # a signal before uvicorn handles them ends the start; uvicorn raises the signal again after its last request
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: sys.exit(0))
        # what this raises stands in one line; what its application raises, uvicorn would print
        store = open_store(settings.store_url, settings.cache_dir, cache_bytes=settings.cache_bytes)
        with connect(settings.redis_url, settings.redis_timeout_seconds) as redis:
            Admission(store, redis, settings.queue).start()
        if wanted():
            tracing.start("halfmoon-gateway")
        config = uvicorn.Config(
            create_app(settings, processes),
            loop="uvloop",
            http=Connection,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            forwarded_allow_ips=list(settings.trusted_proxies),
            timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_SECONDS,
        )
        server = GatewayServer(config)
        _log.info("gateway listens", address=listener.getsockname()[:2])
        server.run([listener])
        tracing.stop()
    return 0 if server.started else 1


def _tune_malloc() -> None:
    """Let malloc of glibc keep the memory of a body for the next one, once for all threads.

    - Memory that is returned to the system must be faulted in again page by page, which takes a sixth of the time of
      a large prediction.
    - With few heaps, unused memory stays bounded however long the gateway runs.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
        mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD_BYTES)
        mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD_BYTES)
