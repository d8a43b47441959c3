"""``halfmoon doctor --data FILE``: what a gateway would understand of a file, and what is wrong with it, without a
service.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np

from app.cli.findings import Finding
from app.codecs.base import BLOCK_BYTES, COLUMNS
from app.codecs.dispatch import ENDINGS, body_decoder
from app.datasets.stored_documents import Fields, stored_documents
from app.errors import InvalidRequest, UnsupportedMediaType
from app.settings import GatewaySettings
from core.documents.kinds import KINDS
from core.errors import Fault, InvalidDocuments
from storage.errors import LimitExceeded
from storage.records import Dataset
from storage.repositories.datasets import Datasets
from storage.store import open_store

_MOST_CLASSES = 12
_SHOWN_DOCUMENTS = 3
_SHOWN = 70


def examine_documents(path: Path, query: Mapping[str, str]) -> Iterator[Finding]:
    """The findings about a file that is sent with these query parameters.

    It is read as an upload is, into a folder that is removed.
    """
    headers = _headers(path)
    if headers is None:
        yield Finding(
            "file",
            False,
            f"{path.name!r}: the end of the name says what a file is; known are .{', .'.join(ENDINGS)}; .gz may follow",
        )
        return
    encoding = f", {headers['content-encoding']}" if "content-encoding" in headers else ""
    yield Finding("file", True, f"{path} is read as {headers['content-type']}{encoding}")
    settings = GatewaySettings()
    try:
        with tempfile.TemporaryDirectory() as folder:
            datasets = Datasets(open_store(f"file://{folder}"), settings.dataset_limits)
            dataset = _read(path, headers, query, datasets, settings)
            first = np.arange(min(_SHOWN_DOCUMENTS, dataset.n_documents))
            shown = stored_documents(datasets.open(dataset.id), first, datasets.fields(dataset.id))
            yield from _understood(dataset, list(shown.values()))
    except InvalidDocuments as error:
        for fault in error.faults or [Fault("", "", error.detail)]:
            document = f"document {fault.document}" if fault.document else ""
            yield Finding("documents", False, ": ".join(filter(None, [document, fault.field, fault.detail])))
    except InvalidRequest as error:
        column = f"--{error.field} " if error.field in (*COLUMNS, "extra") else ""
        yield Finding("documents", False, f"{column}{error}")
    except (LimitExceeded, UnsupportedMediaType) as error:
        yield Finding("documents", False, str(error))


def _headers(path: Path) -> dict[str, str] | None:
    """The headers with which the file would be sent; None if the end of its name is not known."""
    name = path.name.lower()
    gzipped = name.endswith(".gz") and ENDINGS.get(name.removesuffix(".gz").rpartition(".")[2]) is not None
    media_type = ENDINGS.get((name.removesuffix(".gz") if gzipped else name).rpartition(".")[2])
    if media_type is None:
        return None
    return {"content-type": media_type} | ({"content-encoding": "gzip"} if gzipped else {})


def _read(
    path: Path, headers: Mapping[str, str], query: Mapping[str, str], datasets: Datasets, settings: GatewaySettings
) -> Dataset:
    with ExitStack() as stack:
        file = stack.enter_context(path.open("rb"))
        builder = stack.enter_context(datasets.builder())
        body = body_decoder(
            headers, settings.upload_bounds, lambda: stack.enter_context(tempfile.TemporaryFile()), query=query
        )
        while block := file.read(BLOCK_BYTES):
            for batch in body.feed(block):
                builder.add(batch)
        for batch in body.finish():
            builder.add(batch)
        return builder.seal(body.warnings())


def _understood(dataset: Dataset, first: list[Fields]) -> Iterator[Finding]:
    yield Finding("documents", True, f"{dataset.n_documents} of {KINDS[dataset.kind]}{_size(dataset)}")
    for fields in first:
        content = next(
            (str(value) for name, value in fields.items() if name not in ("id", "label", "drawn", "fields")), ""
        )
        label = "no label" if fields["label"] is None else f"label {fields['label']!r}"
        yield Finding("", True, f"id {fields['id']!r}, {label}: {_cut(content)!r}")
    common = Counter({str(label): count for label, count in dataset.classes}).most_common()
    classes = ", ".join(f"{label} ({count})" for label, count in islice(common, _MOST_CLASSES))
    more = f" and {len(common) - _MOST_CLASSES} more" if len(common) > _MOST_CLASSES else ""
    yield Finding(
        "labels", True, f"{dataset.n_labeled} in {len(common)} classes: {classes}{more}" if common else "none"
    )
    for warning in dataset.warnings:
        yield Finding("warning", True, warning)


def _size(dataset: Dataset) -> str:
    if dataset.parts:
        return f": {', '.join(part.name for part in dataset.parts)}"
    return "" if dataset.n_features is None else f", {dataset.n_features} features, {dataset.n_nonzeros} nonzeros"


def _cut(text: str) -> str:
    line = " ".join(text[: 4 * _SHOWN].split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
