"""Uploads: documents become a dataset as they come."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from typing import IO, TypeVar

from fastapi import Request

from app.codecs.base import BLOCK_BYTES
from app.codecs.dispatch import BodyDecoder, body_decoder, in_blocks
from app.http.bodies import in_thread
from app.http.limits import Reservation
from app.http.route_classes import RESERVATION
from app.services import Services
from workers.contract import Dataset
from workers.repositories.datasets import DatasetBuilder
from workers.store import Store
from workers.store.os_errors import translate_os_errors

T = TypeVar("T")


async def read_dataset(request: Request, services: Services, name: str | None) -> Dataset:
    """Store the documents of a body as a dataset, with memory that does not grow with it; whatever goes wrong, nothing is kept."""
    with services.upload_limit.reserve(1):
        return await _read_dataset(request, services, name)


async def _read_dataset(request: Request, services: Services, name: str | None) -> Dataset:
    reservation: Reservation = request.scope[RESERVATION]
    async with _entered(services.parse_pool, ExitStack()) as stack:
        body, builder = await in_thread(services.parse_pool, _begin, request, services, name, stack)
        block = bytearray()
        async for chunk in request.stream():
            block += chunk
            if len(block) >= BLOCK_BYTES:
                await in_thread(services.parse_pool, _take, body, builder, bytes(block))
                block.clear()
                reservation.grow(builder.held_bytes - reservation.size)
        return await in_thread(services.parse_pool, _end, body, builder, bytes(block))


def make_dataset(services: Services, documents: bytes) -> Dataset:
    """Store the documents of a JSON array as a dataset without name."""
    with services.datasets.builder(None) as builder:
        body = body_decoder({"content-type": "application/json"}, services.settings.request_bounds, tempfile.TemporaryFile)
        return _end(body, builder, b'{"documents":' + documents + b"}")


def spool(store: Store) -> IO[bytes]:
    """A file without name on the file system of the staging area: it is gone when it is closed or the process is."""
    folder = store.staging()
    spool = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller enters it
    folder.rmdir()
    return spool


@translate_os_errors("write", "the upload")
def _begin(request: Request, services: Services, name: str | None, stack: ExitStack) -> tuple[BodyDecoder, DatasetBuilder]:
    builder = stack.enter_context(services.datasets.builder(name))
    body = body_decoder(request.headers, services.settings.upload_bounds, lambda: stack.enter_context(spool(services.store)))
    return body, builder


@translate_os_errors("write", "the upload")
def _take(body: BodyDecoder, builder: DatasetBuilder, data: bytes) -> None:
    for piece in in_blocks(data):
        for batch in body.feed(piece):
            builder.add(batch)


@translate_os_errors("write", "the upload")
def _end(body: BodyDecoder, builder: DatasetBuilder, data: bytes) -> Dataset:
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
