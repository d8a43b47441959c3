"""Runs the gateway under uvicorn."""

import ctypes
import resource
import signal
import socket
import sys

import structlog
import uvicorn

from app.http.connection import Connection
from app.http.listener import check_exposure, listen
from app.main import create_app
from app.settings import GatewaySettings
from workers.logs import configure_logging

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
SHUTDOWN_TIMEOUT_SECONDS = 10
"""seconds that open requests, event streams among them, have to end in when the gateway is stopped"""

KEPT_BYTES = 16 << 20
"""of freed memory that is not given back to the system: room for the next body"""
MAPPED_BYTES = 4 << 20
"""from which on memory is taken from the system on its own"""
ARENAS = 2
"""heaps that all threads share; left alone nearly every thread gets one of its own, and keeps what others could use"""
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
"""as <malloc.h> of glibc numbers them"""


def serve(settings: GatewaySettings, descriptor: int | None = None) -> int:
    """Serve until SIGINT or SIGTERM; returns the exit code. ``descriptor`` is a listening socket to use in place of host and port.

    Raises CannotStart where the settings leave open who may call, or the port is taken.
    """
    if descriptor is None:
        check_exposure(settings.access, settings.host)
    with listen(settings.host, settings.port) if descriptor is None else socket.socket(fileno=descriptor) as listener:
        check_exposure(settings.access, listener.getsockname()[0])
        configure_logging(settings.log_format, settings.log_level)
        _manage_memory()
        _open_many_files()
        # before uvicorn listens for them a signal ends the start; when it has ended all requests it sends itself the signal again
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: sys.exit(0))
        server = uvicorn.Server(_config(settings))
        _log.info("gateway listens", address=listener.getsockname()[:2])
        server.run([listener])
    return 0 if server.started else 1


def _config(settings: GatewaySettings) -> uvicorn.Config:
    return uvicorn.Config(
        create_app(settings),
        loop="uvloop",
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT_SECONDS,
    )


def _open_many_files() -> None:
    """A connection takes a file, and systems grant few until they are asked."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _manage_memory() -> None:
    """Have glibc keep what a body was received in: giving it back and faulting it in anew, page by page, takes a sixth of a large prediction.

    And have it keep that once, not for every thread: what is not in use is then bounded, however long the gateway runs.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_ARENA_MAX, ARENAS)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES)
