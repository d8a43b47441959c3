"""Uploads: a body is parsed and stored as a dataset while it is received."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from typing import TypeVar

import msgspec
from fastapi import Request

from app.codecs.base import BLOCK_BYTES
from app.codecs.dispatch import BodyDecoder, body_decoder, document_blocks, in_blocks
from app.http.access import caller_of
from app.http.answers.files import temporary_file
from app.http.bodies import in_steps, in_thread
from app.http.limits import Reservation
from app.http.route_classes import RESERVATION
from app.services import Services
from storage.records import Dataset
from storage.repositories.datasets import Batch, DatasetBuilder
from storage.store.local_files import translate_os_errors

T = TypeVar("T")


async def read_dataset(request: Request, services: Services, name: str | None) -> Dataset:
    """Store the documents of a body as a dataset.

    Memory does not grow with the body; after an error nothing is kept.
    """
    with services.upload_limit.reserve(caller_of(request.scope), 1):
        return await _read_dataset(request, services, name)


async def _read_dataset(request: Request, services: Services, name: str | None) -> Dataset:
    reservation: Reservation = request.scope[RESERVATION]
    pool = services.store_pool
    async with _exit_in_thread(pool, ExitStack()) as stack:
        body, builder = await in_thread(pool, _start_upload, request, services, name, stack)
        block = bytearray()
        async for chunk in request.stream():
            block += chunk
            if len(block) >= BLOCK_BYTES:
                await in_steps(None, pool, _parse(body, builder, bytes(block)))
                block.clear()
                reservation.grow(builder.held_bytes - reservation.size)
        await in_steps(request, pool, _parse(body, builder, bytes(block), complete=True))
        return await in_thread(pool, _seal, body, builder)


def make_dataset(
    services: Services, documents: msgspec.Raw, query: Mapping[str, str]
) -> Generator[None, None, Dataset]:
    """Store the documents of a JSON array as a dataset without a name, a batch a step; ``query`` as of an upload."""
    with services.datasets.builder(None) as builder:
        body = body_decoder(
            {"content-type": "application/json"}, services.settings.request_bounds, tempfile.TemporaryFile, query=query
        )
        for block in document_blocks(documents):
            yield from _parse(body, builder, block)
            yield
        yield from _parse(body, builder, b"", complete=True)
        return _seal(body, builder)


@translate_os_errors("write", "the upload")
def _start_upload(
    request: Request, services: Services, name: str | None, stack: ExitStack
) -> tuple[BodyDecoder, DatasetBuilder]:
    builder = stack.enter_context(services.datasets.builder(name))
    spool = lambda: stack.enter_context(temporary_file(services.store))  # noqa: E731
    body = body_decoder(request.headers, services.settings.upload_bounds, spool, query=request.query_params)
    return body, builder


def _parse(body: BodyDecoder, builder: DatasetBuilder, data: bytes, *, complete: bool = False) -> Iterator[None]:
    """Add the documents of the next bytes, a batch a step: a short compressed body may hold very many."""
    steps = _batches(body, data, complete)
    while (batch := _next(steps)) is not None:
        builder.add(batch)
        yield


def _batches(body: BodyDecoder, data: bytes, complete: bool) -> Iterator[Batch]:
    for piece in in_blocks(data):
        yield from body.feed(piece)
    if complete:
        yield from body.finish()


@translate_os_errors("write", "the upload")
def _next(batches: Iterator[Batch]) -> Batch | None:
    return next(batches, None)


def _seal(body: BodyDecoder, builder: DatasetBuilder) -> Dataset:
    return builder.seal(body.warnings())


@asynccontextmanager
async def _exit_in_thread(executor: Executor, manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """A context manager whose exit blocks; it exits in a thread, also when the request is cancelled."""
    value = manager.__enter__()
    try:
        yield value
    finally:
        await asyncio.shield(in_thread(executor, manager.__exit__, *sys.exc_info()))
