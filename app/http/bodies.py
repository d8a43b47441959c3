"""Request bodies that are read into memory, within bounds, and work on them in threads while the client is there."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from starlette.requests import ClientDisconnect

from app.codecs.base import Bounds, Reserve
from app.codecs.dispatch import check_size, decompressor_of, is_compressed, media_type_of
from app.codecs.json.struct import decode_struct
from app.codecs.transport.encodings import Filter, filtered, without_byte_order_mark
from app.errors import UnsupportedMediaType
from app.http.limits import Reservation
from app.http.route_classes import RESERVATION, HttpState

T = TypeVar("T")
StructT = TypeVar("StructT", bound=msgspec.Struct)
_END: Any = object()
"""What ``next`` returns at the end of an iterator."""
_MIN_BLOCK_BYTES = 32 << 10
"""Bytes of a block that is worth parsing alone; smaller parts are joined."""
_disconnected: ContextVar[threading.Event | None] = ContextVar("disconnected", default=None)
"""Event that is set when the client of this context has disconnected."""


async def in_thread(executor: Executor, function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function in a thread.

    A cancelled request waits for its end, so that nothing is cleaned up under it.
    """
    # the context carries the request id into the log lines of the thread
    future = asyncio.get_running_loop().run_in_executor(executor, copy_context().run, function, *arguments)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


async def read_blocks(request: Request, bounds: Bounds) -> list[bytes]:
    """The body as sent, in blocks of at least _MIN_BLOCK_BYTES but for the last; raises LimitExceeded, TooManyRequests,
    TooSlow.
    """
    length = request.headers.get("content-length", "")
    if length.isdecimal():
        check_size(int(length), bounds)
    reservation: Reservation = request.scope[RESERVATION]
    blocks: list[bytes] = []
    pending: list[bytes] = []
    size = start = 0
    async for chunk in request.stream():
        pending.append(chunk)
        size += len(chunk)
        check_size(size, bounds)
        reservation.grow(len(chunk))
        if size - start >= _MIN_BLOCK_BYTES:
            blocks.append(b"".join(pending))
            pending.clear()
            start = size
    return [*blocks, b"".join(pending)]


async def in_steps(request: Request | None, executor: Executor, steps: Iterator[T]) -> list[T]:
    """Do blocking work in a thread, a step of an iterator at a time, and return the values of all steps.

    Between two steps the thread serves others, so long work delays no other request by more than a step. With
    ``request``, whose body must have been read, work ends there with ClientDisconnect if the client has disconnected.
    """
    done: list[T] = []
    while (step := await in_thread(executor, next, steps, _END)) is not _END:
        done.append(step)
        if request is not None and await request.is_disconnected():
            raise ClientDisconnect
    return done


async def read_json(request: Request, state: HttpState, kind: type[StructT], absent: StructT | None = None) -> StructT:
    """A JSON body as a struct; ``absent``, if given, stands for an empty body.

    Raises InvalidRequest with the field, LimitExceeded, TooManyRequests, UnsupportedMediaType.
    """
    bounds = state.settings.request_bounds
    media_type = media_type_of(request.headers)
    is_empty = request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
    if absent is not None and not media_type and is_empty:
        return absent
    if media_type != "application/json":
        raise UnsupportedMediaType(f"a body of type {media_type or '(none)'}", "this body must be application/json")
    reservation: Reservation = request.scope[RESERVATION]
    decompressor = decompressor_of(request.headers, bounds, reservation.grow)
    data = b"".join(await read_blocks(request, bounds))
    if len(data) < state.settings.large_request_bytes and not is_compressed(request.headers):
        return _decoded(data, decompressor, kind, reservation.grow)
    return await in_thread(state.parse_pool, _decoded, data, decompressor, kind, reservation.grow)


def _decoded(data: bytes, decompressor: Filter, kind: type[StructT], reserve: Reserve) -> StructT:
    return decode_struct(without_byte_order_mark(filtered(data, decompressor)), kind, reserve)


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
