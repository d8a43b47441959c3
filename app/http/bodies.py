"""Request bodies that are read into memory, within bounds: JSON and the documents of a prediction."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any, TypeVar

import msgspec
from fastapi import Request

from app.codecs.base import Bounds
from app.codecs.byte_order_mark import without_byte_order_mark
from app.codecs.content_encoding import Decompressor
from app.codecs.dispatch import check_size, decompressor_of, in_blocks, is_compressed, media_type_of
from app.codecs.json_text import InvalidJson, decode_json, known_fields
from app.errors import InvalidRequest, UnsupportedMediaType
from app.http.limits import Reservation
from app.http.route_classes import RESERVATION
from app.http.state import HttpState

T = TypeVar("T")
_MIN_BLOCK_BYTES = 32 << 10
"""Bytes of a block that is worth parsing alone; smaller parts are joined."""


async def in_thread(executor: Executor, function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function in a thread. A cancelled request waits for its end, so that nothing is cleaned up under it."""
    # the context carries the request id into the log lines of the thread
    future = asyncio.get_running_loop().run_in_executor(executor, copy_context().run, function, *arguments)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


async def read_blocks(request: Request, bounds: Bounds) -> list[bytes]:
    """The body as sent, in blocks of at least _MIN_BLOCK_BYTES but for the last; raises LimitExceeded, TooManyRequests, TooSlow."""
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


async def read_json(request: Request, state: HttpState, kind: type[T], absent: T | None = None) -> T:
    """A JSON body as a struct; ``absent``, if given, stands for an empty body.

    Raises InvalidRequest with the field, LimitExceeded, TooManyRequests, UnsupportedMediaType.
    """
    bounds = state.settings.request_bounds
    media_type = media_type_of(request.headers)
    if absent is not None and not media_type and _has_no_body(request.headers):
        return absent
    if media_type != "application/json":
        raise UnsupportedMediaType(f"a body of type {media_type or '(none)'}", "this body must be application/json")
    reservation: Reservation = request.scope[RESERVATION]
    decompressor = decompressor_of(request.headers, bounds, reservation.grow)
    data = b"".join(await read_blocks(request, bounds))
    if len(data) < state.settings.large_request_bytes and not is_compressed(request.headers):
        return _decoded(data, decompressor, kind)
    return await in_thread(state.parse_pool, _decoded, data, decompressor, kind)


def _has_no_body(headers: Mapping[str, str]) -> bool:
    return headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers


def _decoded(data: bytes, decompressor: Decompressor, kind: type[T]) -> T:
    text = b"".join(piece for part in in_blocks(data) for piece in decompressor.feed(part))
    decompressor.finish()
    try:
        return decode_json(msgspec.json.Decoder(kind).decode, without_byte_order_mark(text))
    except InvalidJson as error:
        raise InvalidRequest(error.field, error.detail + _advice(kind, error)) from None


def _advice(kind: type[Any], error: InvalidJson) -> str:
    """Advice: the values of the field if they are few, or the known fields; else empty."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    types = {each.encode_name: each.type for each in info.fields}
    found = types.get(error.field)
    if isinstance(found, msgspec.inspect.LiteralType):
        return f"; it is one of {', '.join(map(str, found.values))}"
    return known_fields(error.detail, types)
