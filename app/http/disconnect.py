"""Work in a thread that ends soon after its client disconnects."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import ContextVar
from typing import Any, TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from app.http.bodies import in_thread

T = TypeVar("T")
_disconnected: ContextVar[threading.Event | None] = ContextVar("disconnected", default=None)
"""Event that is set when the client of this context has disconnected."""


async def run_until_disconnect(request: Request, executor: Executor, function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function that calls ``raise_if_disconnected`` now and then.

    The body of the request must have been read.
    """
    disconnected = threading.Event()
    token = _disconnected.set(disconnected)
    watch = asyncio.create_task(_watch(request, disconnected))
    try:
        return await in_thread(executor, function, *arguments)
    finally:
        watch.cancel()
        _disconnected.reset(token)


def raise_if_disconnected() -> None:
    """Raises ClientDisconnect if the client of this context has disconnected."""
    disconnected = _disconnected.get()
    if disconnected is not None and disconnected.is_set():
        raise ClientDisconnect


async def _watch(request: Request, disconnected: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    disconnected.set()
