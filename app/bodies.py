"""Request bodies: JSON and small documents in memory, uploads as they come."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from contextvars import copy_context
from typing import IO, Any, TypeVar

import msgspec
from fastapi import Request

from app.checked import PLACE
from app.codecs.base import BLOCK_BYTES, Bounds
from app.codecs.dispatch import Body, body_of, check_size, is_packed, media_type_of, pieces, unpacker_of
from app.codecs.encoding import Unpacker
from app.codecs.mark import unmarked
from app.codecs.text import WrongJson, decoded, instead
from app.errors import InvalidRequest, UnsupportedMediaType
from app.room import Place
from app.services import Services
from workers.contract import Dataset
from workers.datasets import DatasetBuilder
from workers.storage import Store
from workers.storage.trouble import disk

T = TypeVar("T")
_WORTH_PARSING = 32 << 10
"""bytes; less is joined with what follows, more is not worth a copy"""


async def in_thread(executor: Executor, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that blocks; a cancelled request waits for its end, so that nobody tidies up while it still works."""
    # with what is known of the request, for whatever is logged on its behalf
    future = asyncio.get_running_loop().run_in_executor(executor, copy_context().run, function, *arguments)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


async def read_blocks(request: Request, bounds: Bounds) -> list[bytes]:
    """The whole body as sent, in blocks of at least _WORTH_PARSING bytes but for the last; raises LimitExceeded, TooMany, TooSlow."""
    length = request.headers.get("content-length", "")
    if length.isdecimal():
        check_size(int(length), bounds)
    place: Place = request.scope[PLACE]
    blocks: list[bytes] = []
    pending: list[bytes] = []
    size = start = 0
    async for chunk in request.stream():
        pending.append(chunk)
        size += len(chunk)
        check_size(size, bounds)
        place.grow(len(chunk))
        if size - start >= _WORTH_PARSING:
            blocks.append(b"".join(pending))
            pending.clear()
            start = size
    return [*blocks, b"".join(pending)]


async def read_json(request: Request, services: Services, kind: type[T], absent: T | None = None) -> T:
    """A JSON body as a struct, or ``absent`` if that is given and there is no body.

    Raises InvalidRequest naming the field, LimitExceeded, TooMany, UnsupportedMediaType.
    """
    bounds = services.settings.request_bounds
    media_type = media_type_of(request.headers)
    if absent is not None and not media_type and _has_no_body(request.headers):
        return absent
    if media_type != "application/json":
        raise UnsupportedMediaType(f"a body of type {media_type or '(none)'}", "this one is application/json")
    place: Place = request.scope[PLACE]
    unpacker = unpacker_of(request.headers, bounds, place.grow)
    data = b"".join(await read_blocks(request, bounds))
    if len(data) < services.settings.large_request_bytes and not is_packed(request.headers):
        return _decoded(data, unpacker, kind)
    return await in_thread(services.parsing, _decoded, data, unpacker, kind)


async def read_dataset(request: Request, services: Services, name: str | None) -> Dataset:
    """Store the documents of a body as a dataset, with memory that does not grow with it; whatever goes wrong, nothing is kept."""
    with services.uploads.place() as place:
        place.grow(1)
        return await _read_dataset(request, services, name)


async def _read_dataset(request: Request, services: Services, name: str | None) -> Dataset:
    place: Place = request.scope[PLACE]
    async with _entered(services.parsing, ExitStack()) as stack:
        body, builder = await in_thread(services.parsing, _begin, request, services, name, stack)
        block = bytearray()
        async for chunk in request.stream():
            block += chunk
            if len(block) >= BLOCK_BYTES:
                await in_thread(services.parsing, _take, body, builder, bytes(block))
                block.clear()
                place.grow(builder.held_bytes - place.size)
        return await in_thread(services.parsing, _end, body, builder, bytes(block))


def make_dataset(services: Services, documents: bytes) -> Dataset:
    """Store the documents of a JSON array as a dataset without name."""
    with services.datasets.builder(None) as builder:
        body = body_of({"content-type": "application/json"}, services.settings.request_bounds, tempfile.TemporaryFile)
        return _end(body, builder, b'{"documents":' + documents + b"}")


def _has_no_body(headers: Mapping[str, str]) -> bool:
    return headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers


def spool(store: Store) -> IO[bytes]:
    """A file without name on the file system of the staging area: it is gone when it is closed or the process is."""
    folder = store.staging()
    spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller enters it
    folder.rmdir()
    return spool


def _decoded(data: bytes, unpacker: Unpacker, kind: type[T]) -> T:
    text = b"".join(piece for part in pieces(data) for piece in unpacker.feed(part))
    unpacker.finish()
    try:
        return decoded(msgspec.json.Decoder(kind).decode, unmarked(text))
    except WrongJson as error:
        raise InvalidRequest(error.field, error.detail + _advice(kind, error)) from None


def _advice(kind: type[Any], error: WrongJson) -> str:
    """What a field may be that has few values, and which fields there are, or nothing."""
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    types = {each.encode_name: each.type for each in info.fields}
    found = types.get(error.field)
    if isinstance(found, msgspec.inspect.LiteralType):
        return f"; it is one of {', '.join(map(str, found.values))}"
    return instead(error.detail, types)


@disk("write", "the upload")
def _begin(request: Request, services: Services, name: str | None, stack: ExitStack) -> tuple[Body, DatasetBuilder]:
    builder = stack.enter_context(services.datasets.builder(name))
    body = body_of(request.headers, services.settings.upload_bounds, lambda: stack.enter_context(spool(services.store)))
    return body, builder


@disk("write", "the upload")
def _take(body: Body, builder: DatasetBuilder, data: bytes) -> None:
    for piece in pieces(data):
        for batch in body.feed(piece):
            builder.add(batch)


@disk("write", "the upload")
def _end(body: Body, builder: DatasetBuilder, data: bytes) -> Dataset:
    _take(body, builder, data)
    for batch in body.finish():
        builder.add(batch)
    return builder.seal()


@asynccontextmanager
async def _entered(executor: Executor, manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """A context whose leaving blocks, left in a thread, also when the request is cancelled."""
    value = manager.__enter__()
    try:
        yield value
    finally:
        await asyncio.shield(in_thread(executor, manager.__exit__, *sys.exc_info()))
