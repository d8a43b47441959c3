"""The JSON form of a document, and batches of such documents as arrays."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice, repeat
from typing import Annotated, Any, Literal, cast

import msgspec
import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from app.codecs.base import MAX_FAULTS, MAX_TEXT
from app.codecs.dense import DenseParts, vectors_in
from app.codecs.features import feature_fault, named_rows
from app.codecs.json_text import InvalidJson, decode_json, known_fields
from app.codecs.numbers import rows_of
from core.documents.drawn import Draw
from core.documents.kinds import DENSE, NamedRows, PartRows, Rows, RowsOfKind, TextRows, field_of, in_words
from core.documents.rows import MAX_FEATURES, SparseRows
from core.errors import Fault, InvalidDocuments
from workers.contract import Label
from workers.errors import LimitExceeded
from workers.repositories.datasets import Batch

Index = Annotated[int, Meta(ge=0, lt=MAX_FEATURES)]
ShortText = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
_LARGEST_WHOLE = 2**53
PARTS = ("text", "features", "indices", DENSE, "vectors")
"""Fields of a document that hold its parts, in the order in which parts are stored."""
_TEXT, _VECTORS = ("text",), ("indices",)
_FIRST_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*"([^"\\]{1,%d}+)"' % MAX_TEXT)
_NOTHING = msgspec.Raw(b"{}")
_EMPTY, _UNLABELED = "Expected `str` of length >= 1", "; an unlabeled document has none, or null"
_BEGINNING = 200
_WORDS = re.compile(rb"(?!true|false|null|NaN|Infinity)[^\W\d]|[+<#]|\d+ \d+:")
_SECOND = re.compile(rb'"[^"\\]*"\s*:[^{}]*\}\s*\{\s*"')
_DRAWS = f"; it is one of {', '.join(draw.word for draw in Draw)}"
_PART_NAMES = "; the name of a vector has 1 to 64 letters, digits, _ or -"
_TOO_LONG = "send it in parts, or have HALFMOON_MAX_DOCUMENT_BYTES raised"
PartName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}\Z")]
"""Name of one of several vectors of a document."""
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
DrawWord = Literal["unknown", "random", "chosen", "found"]
"""How the label of a document was come by: the words of core.documents.drawn.Draw."""


class Document(Struct, forbid_unknown_fields=True, gc=False):
    """One document of a JSON or NDJSON body. It has at least one of ``text``, ``features``, ``indices``, ``vector`` and ``vectors``: its parts."""

    indices: list[Index] | None = None
    values: list[float] | None = None
    features: msgspec.Raw = msgspec.Raw()
    """JSON object that ``app.codecs.features`` parses, for a whole batch at once."""
    text: str | None = None
    vector: list[float] | None = None
    vectors: dict[PartName, list[float] | None] | None = None
    label: ShortText | Integer | float | None = None
    """A number with a fraction is refused later; 3.0 is 3, as tables of numbers write it that have gaps."""
    id: ShortText | Integer | None = None
    drawn: DrawWord | None = None


class BatchBuilder:
    """Builds batches of documents. It counts the documents, because one without an id is named by its position."""

    def __init__(self) -> None:
        self.position = 0
        self._parts: tuple[str, ...] = ()
        self._dense = DenseParts()

    def batch(self, documents: Sequence[Document]) -> Batch:
        """The batch of these documents; raises InvalidDocuments for one that shares no part with those before."""
        rows = self._rows(documents)
        ids, labels, words = [d.id for d in documents], [d.label for d in documents], [d.drawn for d in documents]
        if float in set(map(type, labels)):
            self._refuse(documents, map(_label_fault, labels))
            labels = [int(label) if isinstance(label, float) else label for label in labels]
        if int in set(map(type, ids)):
            ids = [None if id is None else str(id) for id in ids]
        self.position += len(documents)
        return Batch(rows, cast(list[Label | None], labels), cast(list[str | None], ids) if any(ids) else None, _draws(words) if any(words) else None)

    def _rows(self, documents: Sequence[Document]) -> Rows:
        given = list(map(_parts_of, documents))
        self._check_parts(documents, given)
        held = {part for each in set(given) for part in each}
        parts: dict[str, RowsOfKind] = {}
        if "text" in held:
            parts["text"] = TextRows.of([document.text or "" for document in documents])
        if "features" in held:
            parts["features"] = self._named(documents)
        if "indices" in held:
            parts["indices"] = self._vectors(documents)
        dense = sorted(held - parts.keys())
        if not dense:
            return PartRows(parts) if len(parts) > 1 else next(iter(parts.values()))
        vectors = {part: vectors_in(documents, part) for part in dense}
        self._refuse(documents, self._dense.faults(vectors))
        return PartRows(parts | {part: self._dense.rows(part, each) for part, each in vectors.items()})

    def _check_parts(self, documents: Sequence[Document], given: Sequence[tuple[str, ...]]) -> None:
        """Raises InvalidDocuments for documents without a part, and for those that share none with all before them."""
        if not self._parts or set(given) != {self._parts}:
            self._refuse(documents, map(self._part_fault, given))
        if any(document.values is not None and document.indices is None for document in documents):
            self._refuse(documents, map(_values_fault, documents))

    def _part_fault(self, parts: tuple[str, ...]) -> tuple[str, str] | None:
        """Field and detail of why a document does not belong to those before it, or None; called in the order of the documents."""
        if not parts:
            return field_of(self._parts[0]) if self._parts else "text", f"is missing or null; a document has at least one of {', '.join(PARTS)}"
        if self._parts and not set(parts) & set(self._parts):
            detail = f"earlier documents have {in_words(self._parts)}; a document may have more parts or fewer, but shares one with those before it"
            return field_of(parts[0]), detail
        self._parts = tuple(dict.fromkeys([*self._parts, *parts]))
        return None

    def _vectors(self, documents: Sequence[Document]) -> SparseRows:
        indices = [document.indices or [] for document in documents]
        lengths = np.fromiter(map(len, indices), np.int64, len(documents))
        self._refuse(documents, map(_length_fault, documents))
        indptr = np.zeros(len(documents) + 1, np.int64)
        np.cumsum(lengths, out=indptr[1:])
        total = int(indptr[-1])
        columns = np.fromiter(chain.from_iterable(indices), np.uint32, total)
        values = np.fromiter(chain.from_iterable([_values(d) for d in documents]), np.float64, total)
        return rows_of(indptr, columns, values)

    def _named(self, documents: Sequence[Document]) -> NamedRows:
        features = [document.features if _has_features(document) else _NOTHING for document in documents]
        try:
            return named_rows(features)
        except InvalidJson as error:
            self._refuse(documents, map(feature_fault, features))
            raise invalid_documents([Fault("", "features", error.detail)]) from None

    def _refuse(self, documents: Sequence[Document], faults: Iterable[tuple[str, str] | None]) -> None:
        """Raises InvalidDocuments for the first documents that have a fault, given as field and detail."""
        found = ((at, fault) for at, fault in enumerate(faults) if fault is not None)
        named = [Fault(_name_of(documents[at], self.position + at), *fault) for at, fault in islice(found, MAX_FAULTS)]
        if named:
            raise invalid_documents(named)


def _name_of(document: Document, position: int) -> str:
    return str(position if document.id is None else document.id)


def _label_fault(label: str | float | None) -> tuple[str, str] | None:
    if isinstance(label, float) and not (label.is_integer() and abs(label) <= _LARGEST_WHOLE):
        return "label", f"{label!r} is a float with a fraction; a label is a text or an integer"
    return None


def _draws(words: Sequence[DrawWord | None]) -> NDArray[np.int8]:
    return np.fromiter((Draw.UNKNOWN if word is None else Draw.of(word) for word in words), np.int8, len(words))


def _length_fault(document: Document) -> tuple[str, str] | None:
    n_values, n_indices = len(document.values or ()), len(document.indices or ())
    if document.values is None or n_values == n_indices:
        return None
    return "values", f"has {n_values} numbers, but indices has {n_indices}"


def _values_fault(document: Document) -> tuple[str, str] | None:
    return ("values", "are allowed only beside indices") if document.values is not None and document.indices is None else None


def _parts_of(document: Document) -> tuple[str, ...]:
    """The parts that a document has; null counts as absent."""
    if document.vectors is None and document.vector is None and not document.features:
        if document.text is None:
            return _VECTORS if document.indices is not None else ()
        if document.indices is None:
            return _TEXT
    found = ["text"] if document.text is not None else []
    found += ["features"] if _has_features(document) else []
    found += ["indices"] if document.indices is not None else []
    found += [DENSE] if document.vector is not None else []
    return (*found, *(f"{DENSE}.{name}" for name, vector in sorted((document.vectors or {}).items()) if vector is not None))


def _has_features(document: Document) -> bool:
    return bytes(document.features) not in (b"", b"null")


def invalid_documents(faults: Sequence[Fault]) -> InvalidDocuments:
    """The error for documents with these faults."""
    first = faults[0]
    where = f"document {first.document}" if first.document else "the body"
    return InvalidDocuments(f"{where}: {first.field + ': ' if first.field else ''}{first.detail}", faults[:MAX_FAULTS])


def json_fault(error: InvalidJson, text: bytes | bytearray, position: int | None = None) -> Fault:
    """The fault of one document in JSON. It names the document by its id where that can be read, else by its position, if known."""
    name = id_in(text) or ("" if position is None else str(position))
    field = re.split(r"[.\[]", error.field[:MAX_TEXT])[0]
    return Fault(name, field, (error.detail if field else shape_detail(text) or error.detail) + _advice(field, error.detail))


def shape_detail(text: bytes | bytearray) -> str:
    """What is wrong with a line that is no object, by how it begins and ends; empty if it may be one."""
    line = bytes(text[:_BEGINNING]).strip()
    if line.startswith(b"["):
        return 'an array is not a document; send {"documents": [...]} as application/json, or each document in a line of its own'
    if line.startswith(b'"'):
        return 'a text alone is not a document; write {"text": "..."}'
    if line in (b"{", b"}") or (line.startswith(b'"') and line.endswith((b",", b'"'))):
        return 'a document is a line here; write each in one line, or send {"documents": [...]} as application/json'
    if line.startswith(b"{'"):
        return "names and texts stand in double quotes in JSON, as json.dumps of Python writes them"
    if _SECOND.search(bytes(text)):
        return "a line has one document, and here a second one follows; curl keeps line ends with --data-binary, and not with -d"
    if _WORDS.match(line):
        return "this is not JSON; a table is sent as text/csv, lines of label index:value as text/x-svmlight"
    return ""


def _advice(field: str, detail: str) -> str:
    if field == "label" and detail == _EMPTY:
        return _UNLABELED
    if field == "label" and detail.endswith("got `array`"):
        return "; a document has one label here"
    if field in ("label", "id") and detail.startswith("Expected `"):
        return f"; {'a label' if field == 'label' else 'an id'} is a text or an integer"
    if field == "vectors" and "regex" in detail:
        return _PART_NAMES
    return _DRAWS if field == "drawn" else known_fields(detail, Document.__struct_fields__)


def document_too_long(text: bytes | bytearray, where: str, most: int) -> LimitExceeded:
    """The error for a document of more than ``most`` bytes; ``text`` is its beginning."""
    name = id_in(text)
    return LimitExceeded(f"bytes in document {name}, {where}" if name else f"bytes in the document {where}", most, _TOO_LONG)


class _Identified(Struct):
    id: Any = None


_identified = msgspec.json.Decoder(_Identified)


def id_in(text: bytes | bytearray) -> str:
    """The id in the JSON of a document; in malformed JSON it is found if it is the first field. Empty if there is none."""
    try:
        found = decode_json(_identified.decode, text).id
    except InvalidJson:
        first = _FIRST_ID.match(text)
        return first[1].decode(errors="replace") if first else ""
    return str(found)[:MAX_TEXT] if isinstance(found, str | int) and not isinstance(found, bool) else ""


def _values(document: Document) -> Iterable[float]:
    return repeat(1.0, len(document.indices or ())) if document.values is None else document.values
