"""Long work in a thread, for a caller who may go away: it ends soon after."""

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
_gone: ContextVar[threading.Event | None] = ContextVar("gone", default=None)
"""set when nobody waits any more for what is done in this context"""


async def run_until_disconnect(request: Request, executor: Executor, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that blocks and now and then calls ``raise_if_disconnected``. The body of the request must have been read."""
    gone = threading.Event()
    token = _gone.set(gone)
    watching = asyncio.create_task(_watch(request, gone))
    try:
        return await in_thread(executor, function, *arguments)
    finally:
        watching.cancel()
        _gone.reset(token)


def raise_if_disconnected() -> None:
    """Raises ClientDisconnect where somebody waited for this work, and has gone."""
    gone = _gone.get()
    if gone is not None and gone.is_set():
        raise ClientDisconnect


async def _watch(request: Request, gone: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()
