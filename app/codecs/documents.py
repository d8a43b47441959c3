"""The document as JSON has it, and how many of them become arrays."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta, Struct

from app.codecs.base import MAX_FAULTS, MAX_TEXT
from app.codecs.text import WrongJson, decoded
from core.errors import Fault, InvalidDocuments
from core.rows import MAX_FEATURES, SparseRows
from workers.datasets import Batch

Index = Annotated[int, Meta(ge=0, lt=MAX_FEATURES)]
Text = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class Document(Struct, forbid_unknown_fields=True, gc=False):
    """One document of any of the JSON bodies."""

    indices: list[Index]
    values: list[float] | None = None
    label: Text | Integer | None = None
    id: Text | None = None


class BatchMaker:
    """Turns documents into batches; counts them, since a document without id is called by its position."""

    def __init__(self) -> None:
        self.position = 0

    def batch(self, documents: Sequence[Document]) -> Batch:
        """The arrays of these documents; raises InvalidDocuments where ``values`` and ``indices`` differ in length."""
        lengths = np.fromiter((len(d.indices) for d in documents), np.int64, len(documents))
        self._check_lengths(documents, lengths)
        indptr = np.zeros(len(documents) + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        total = int(indptr[-1])
        indices = np.fromiter(chain.from_iterable([d.indices for d in documents]), np.uint32, total)
        values = np.fromiter(chain.from_iterable([_values(d) for d in documents]), np.float64, total)
        ids = [d.id for d in documents]
        self.position += len(documents)
        return Batch(rows_of(indptr, indices, values), [d.label for d in documents], ids if any(ids) else None)

    def _check_lengths(self, documents: Sequence[Document], lengths: np.ndarray[Any, np.dtype[np.int64]]) -> None:
        given = np.fromiter((len(d.indices) if d.values is None else len(d.values) for d in documents), np.int64, len(documents))
        faults = []
        for at in np.flatnonzero(given != lengths)[:MAX_FAULTS].tolist():
            name = documents[at].id or str(self.position + at)
            faults.append(Fault(name, "values", f"has {given[at]} numbers, but indices has {lengths[at]}"))
        if faults:
            raise refusal(faults)


def rows_of(indptr: np.ndarray[Any, Any], indices: np.ndarray[Any, Any], values: np.ndarray[Any, Any], n_features: int | None = None) -> SparseRows:
    """Rows of these arrays, by default of no more features than occur."""
    if n_features is None:
        n_features = int(indices.max()) + 1 if len(indices) else 0
    return SparseRows(indptr.astype(np.int64, copy=False), indices.astype(np.uint32, copy=False), narrowed(values), n_features)


def narrowed(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Values as they are stored, in C order; one too large for float32 becomes infinite, which the check of all rows refuses."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32, order="C", copy=False)


def refusal(faults: Sequence[Fault]) -> InvalidDocuments:
    """The error of documents with these faults."""
    first = faults[0]
    where = f"document {first.document}" if first.document else "the body"
    return InvalidDocuments(f"{where}: {first.field + ': ' if first.field else ''}{first.detail}", faults[:MAX_FAULTS])


def fault_of(error: WrongJson, text: bytes | bytearray, position: int | None = None) -> Fault:
    """The fault of one document's JSON ``text``; it is named by its id where that can still be read, else by its position if that is known."""
    name = _id_in(text) or ("" if position is None else str(position))
    return Fault(name, re.split(r"[.\[]", error.field[:MAX_TEXT])[0], error.detail)


class _Identified(Struct):
    id: Any = None


_identified = msgspec.json.Decoder(_Identified)


def _id_in(text: bytes | bytearray) -> str:
    try:
        found = decoded(_identified.decode, text).id
    except WrongJson:
        return ""
    return found[:MAX_TEXT] if isinstance(found, str) else ""


def _values(document: Document) -> Iterable[float]:
    return repeat(1.0, len(document.indices)) if document.values is None else document.values
