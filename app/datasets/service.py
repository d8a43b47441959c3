"""The work behind calls about datasets: uploads, changes of labels, and names of a dataset and its classes, which are
shown, set by people, and completed from the labels.

A body is parsed and stored as a dataset while it is received.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import msgspec
from fastapi import Request
from msgspec import UNSET
from msgspec.structs import asdict

from app.codecs.base import BLOCK_BYTES, Decoder, Reserve, in_blocks
from app.codecs.dispatch import body_decoder, check_length, check_size, document_blocks
from app.codecs.json.struct import decoded_slices, is_given
from app.codecs.json.text import InvalidJson
from app.datasets.schemas import MOST_NAMES, ClassesBody, ClassList, ClassOut, DatasetChanges, DatasetOut, LabelsBody
from app.errors import InvalidRequest
from app.http.access import caller_of
from app.http.answers import temporary_file
from app.http.limits import Reservation
from app.http.requests import RESERVATION, in_steps, in_thread
from app.services.wiring import Services
from core.documents.label_sets import label_order
from core.errors import Fault, refuse
from storage.errors import translate_os_errors
from storage.records import MAX_TEXT, Dataset, Given, Label, labels_in
from storage.repositories.datasets import DatasetBuilder
from storage.repositories.datasets.files.npy import draw_detail
from storage.repositories.datasets.labels import label_detail, labels_detail
from storage.repositories.datasets.repository import ClassProfile

T = TypeVar("T")
_ENTRY_BYTES = 160
"""Bytes of memory of an entry of a large dict, beside the characters of its key."""
_KNOWN = 10_000
_EXPECTED = "must be an object of values by document id"
_LONGEST = 16 * MAX_TEXT
"""Bytes of a valid entry at most: id and label, each character as an escape of six bytes."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode
Detail = Callable[[Any], str | None]
"""Says why a value is not valid, None if it is."""


async def read_dataset(request: Request, services: Services, name: str | None) -> Dataset:
    """Store the documents of a body as a dataset.

    Memory does not grow with the body; after an error nothing is kept.
    """
    reservation: Reservation = request.scope[RESERVATION]
    pool, bounds = services.pools.store, services.settings.upload_bounds
    with services.limits.uploads.reserve(caller_of(request.scope), 1):
        async with _exit_in_thread(pool, ExitStack()) as stack:
            body, builder = await in_thread(pool, _start_upload, request, services, name, stack)
            check_length(request.headers, bounds)
            block, size = bytearray(), 0
            async for chunk in request.stream():
                block += chunk
                size += len(chunk)
                check_size(size, bounds)
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
) -> tuple[Decoder, DatasetBuilder]:
    builder = stack.enter_context(services.datasets.builder(name))
    body = body_decoder(
        request.headers,
        services.settings.upload_bounds,
        lambda: stack.enter_context(temporary_file(services.store)),
        query=request.query_params,
    )
    return body, builder


def _parse(body: Decoder, builder: DatasetBuilder, data: bytes, *, complete: bool = False) -> Iterator[None]:
    """Add the documents of the next bytes, a batch a step: a short compressed body may hold very many."""
    with translate_os_errors("write", "the upload"):
        for batch in chain.from_iterable(map(body.feed, in_blocks(data))):
            builder.add(batch)
            yield
        for batch in body.finish() if complete else ():
            builder.add(batch)
            yield


def _seal(body: Decoder, builder: DatasetBuilder) -> Dataset:
    return builder.seal(body.warnings())


@asynccontextmanager
async def _exit_in_thread(executor: Executor, manager: AbstractContextManager[T]) -> AsyncIterator[T]:
    """A context manager that exits in a thread, also when the request is cancelled."""
    value = manager.__enter__()
    try:
        yield value
    finally:
        await asyncio.shield(in_thread(executor, manager.__exit__, *sys.exc_info()))


@dataclass(frozen=True)
class LabelChanges:
    """Changes of labels by document id."""

    labels: dict[str, Given | None] = field(default_factory=dict)
    excluded: dict[str, tuple[Label, ...]] = field(default_factory=dict)
    """Labels that do not apply."""
    drawn: dict[str, str] = field(default_factory=dict)
    """How labels were come by, in words."""

    def read(self, body: LabelsBody, reserve: Reserve) -> Iterator[None]:
        """Add the changes of a body, a slice a step. Raises as ``_entries``."""
        if not is_given(body.labels) and not is_given(body.excluded) and body.label_kind is None:
            raise InvalidRequest("labels", _EXPECTED)
        for labels in _entries(body.labels, "labels", "label", _given_detail, reserve):
            self.labels.update({id: tuple(each) if isinstance(each, list) else each for id, each in labels.items()})
            yield
        for excluded in _entries(body.excluded, "not", "not", _list_detail, reserve):
            self.excluded.update({id: tuple(labels) for id, labels in excluded.items()})
            yield
        for drawn in _entries(body.drawn, "drawn", "drawn", draw_detail, reserve):
            self.drawn.update(drawn)
            yield

    def clear(self) -> None:
        """Drop the changes one by one: freeing a dict of a million entries would hold the interpreter."""
        for entries in (self.labels, self.excluded, self.drawn):
            while entries:
                entries.popitem()


def _given_detail(given: Any) -> str | None:
    return _list_detail(given) if isinstance(given, list) else None if given is None else label_detail(given, None)


def _list_detail(labels: Any) -> str | None:
    return labels_detail(labels) if isinstance(labels, list) else "must be a list of labels"


def _entries(
    raw: msgspec.Raw, name: str, fault_field: str, detail: Detail, reserve: Reserve
) -> Iterator[dict[str, Any]]:
    """The entries of a raw field by document id, a slice at a time; none if the field is absent or null.

    Raises InvalidRequest if the field is no object, InvalidDocuments naming the documents whose values are not valid,
    LimitExceeded, and what ``reserve`` raises.
    """
    if not is_given(raw):
        return
    text = memoryview(raw)
    if text[0] != ord("{"):
        raise InvalidRequest(name, _EXPECTED)
    known: dict[Any, Any] = {}
    try:
        for entries in decoded_slices(_decode, text, _LONGEST, f"an entry of {name}"):
            refuse(
                Fault(id, fault_field, wrong) for id, value in entries.items() if (wrong := detail(value)) is not None
            )
            reserve(sum(map(len, entries)) + _ENTRY_BYTES * len(entries))
            # equal values share one object: labels are few
            yield {
                id: value if isinstance(value, list) or len(known) >= _KNOWN else known.setdefault(value, value)
                for id, value in entries.items()
            }
    except InvalidJson as error:
        raise InvalidRequest(name, error.detail) from None


_KEYS = "123456789"


def change_profile(services: Services, id: str, changes: DatasetChanges) -> DatasetOut:
    """Change the name, the guidelines, who labels what, the names of some clusters, or whether a dataset is archived;
    raises NotFound, InvalidRequest.
    """
    dataset, before = services.datasets.get(id), services.datasets.profile(id)
    given = {name: value for name in changes.__struct_fields__ if (value := getattr(changes, name)) is not UNSET}
    # several people name clusters at a time
    given["clusters"] = {key: name for key, name in (before.clusters | given.get("clusters", {})).items() if name}
    if len(given["clusters"]) > MOST_NAMES:
        raise InvalidRequest("clusters", f"would have more than {MOST_NAMES} names; an empty one takes a name away")
    profile = before.model_copy(update=given)
    services.datasets.put_profile(id, profile)
    return DatasetOut.of(dataset, profile)


def classes_of(services: Services, id: str) -> ClassList:
    """The classes that were set, and behind them those that documents have; raises NotFound."""
    labels = [
        *(label for label, _ in services.datasets.get(id).classes),
        *(label for answer in services.datasets.log(id).answers().values() for label in labels_in(answer.label)),
    ]
    known = services.datasets.profile(id).classes
    others = sorted({*labels} - {each.name for each in known}, key=label_order)
    listed = [*known, *(ClassProfile(name=label) for label in others)]
    free = [key for key in _KEYS if key not in {each.key for each in known}] if len(listed) <= len(_KEYS) else []
    given = ClassList(classes=[])
    for each in listed:
        key = each.key or (free.pop(0) if free else None)
        given.classes.append(ClassOut(**each.model_dump() | {"key": key}))
    return given


def set_classes(services: Services, id: str, body: ClassesBody) -> ClassList:
    """Set the classes of a dataset; raises NotFound, InvalidRequest naming the class."""
    dataset, log = services.datasets.get(id), services.datasets.log(id)
    log.refreshed()
    label_type = type(dataset.classes[0][0]) if dataset.classes else log.label_type
    for place, each in enumerate(body.classes):
        label_type = label_type or type(each.name)
        detail = label_detail(each.name, label_type)
        if detail is not None:
            raise InvalidRequest(f"classes[{place}].name", detail)
        for other in body.classes[:place]:
            if other.name == each.name:
                raise InvalidRequest(f"classes[{place}].name", "is that of a class before it")
            if each.key is not None and other.key == each.key:
                raise InvalidRequest(f"classes[{place}].key", f"is that of the class {other.name!r}, too")
    given = [ClassProfile(**asdict(each)) for each in body.classes]
    services.datasets.put_profile(id, services.datasets.profile(id).model_copy(update={"classes": given}))
    return classes_of(services, id)
