"""Batches of documents in JSON, as arrays: texts, named features and dense vectors.

All vectors of a part have the same number of numbers.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import accumulate, chain, zip_longest
from typing import Any, cast

import msgspec
import numpy as np

from app.codecs.base import LARGEST_WHOLE, check_limit
from app.codecs.json.struct import is_given
from app.codecs.json.text import STRING, InvalidJson, decode_json
from app.codecs.json_documents.document import PARTS, Document, ShortText
from app.codecs.numbers import joined, rows_of
from core.documents.drawn import Draw
from core.documents.kinds import DENSE, NamedRows, PartRows, Rows, RowsOfKind, TextRows, field_of, in_words
from core.documents.rows import SparseRows, without_zeros
from core.errors import Fault, refuse, refused
from storage.records import MAX_TEXT, Label
from storage.repositories.datasets import Batch, ExtraFields
from storage.repositories.datasets.labels import LEAVE_OUT, MAX_NAMES, LabelLists

Vectors = Sequence[Sequence[float] | None]

_SHOWN = 40
_SORTED = 1 << 13
_all = msgspec.json.Decoder(list[dict[ShortText, float]])
_one = msgspec.json.Decoder(dict[ShortText, float])
_any = msgspec.json.Decoder(dict[str, Any])


def vectors_in(documents: Sequence[Document], part: str) -> Vectors:
    """The vector of each document in a dense part, None where it has none."""
    if part == DENSE:
        return [document.vector for document in documents]
    name = part.removeprefix(f"{DENSE}.")
    return [None if document.vectors is None else document.vectors.get(name) for document in documents]


class DenseParts:
    """The lengths of the vectors of each part, by the first vector of a body."""

    def __init__(self) -> None:
        self._lengths: dict[str, int] = {}

    def faults(self, parts: Mapping[str, Vectors]) -> Iterator[tuple[str, str] | None]:
        """Of each document the field and detail of a vector of another length, or None."""
        for vectors in zip_longest(*parts.values()):
            given = zip(parts, vectors, strict=True)
            yield next(
                (fault for part, vector in given if vector is not None and (fault := self._fault(part, len(vector)))),
                None,
            )

    def rows(self, part: str, vectors: Vectors) -> SparseRows:
        """Rows of vectors without faults.

        Zeros are dropped, as of dense matrices in every format; a document without a vector has an empty row.
        """
        n_features = self._lengths[part]
        held = np.fromiter((vector is not None for vector in vectors), bool, len(vectors))
        indptr = np.concatenate([[0], np.cumsum(held * n_features)]).astype(np.int64)
        values = joined((vector for vector in vectors if vector is not None), "f")
        indices = np.tile(np.arange(n_features, dtype=np.uint32), int(held.sum()))
        return without_zeros(rows_of(indptr, indices, values, n_features))

    def _fault(self, part: str, length: int) -> tuple[str, str] | None:
        name = part.removeprefix(DENSE).removeprefix(".")
        where = f"{name!r} " if name else ""
        if not length:
            return field_of(part), f"{where}has no number; a document without a vector leaves it out"
        known = self._lengths.setdefault(part, length)
        return (
            None if known == length else (field_of(part), f"{where}has {length} numbers, but earlier ones have {known}")
        )


def named_rows(objects: Sequence[msgspec.Raw]) -> NamedRows:
    """The rows of these objects.

    Names are numbered in the order of their first use; raises InvalidJson if an object is wrong.
    """
    text = b"[" + b",".join(objects) + b"]"
    features = decode_json(_all.decode, text)
    indptr = np.array([0, *accumulate(map(len, features))])
    # decoding drops repeated names, so colons are counted: all values are numbers, so each colon outside strings
    # follows a name
    if STRING.sub(b"", text).count(b":") != indptr[-1]:
        raise InvalidJson("a name is repeated", "features")
    columns: dict[str, int] = {}
    # objects have no order: sorted by name, equal documents become equal bytes
    ordered = [_by_name(each) for each in features]
    indices = np.fromiter(
        (columns.setdefault(name, len(columns)) for each in ordered for name, _ in each), np.uint32, int(indptr[-1])
    )
    values = np.fromiter((value for each in ordered for _, value in each), np.float64, int(indptr[-1]))
    return NamedRows(rows_of(indptr, indices, values, len(columns)), list(columns))


def _by_name(features: dict[str, float]) -> list[tuple[str, float]]:
    """The features in the order of their names.

    Very many are sorted in parts: sorting holds the interpreter until it returns.
    """
    items = list(features.items())
    if len(items) <= _SORTED:
        return sorted(items)
    return list(merge(*(sorted(items[start : start + _SORTED]) for start in range(0, len(items), _SORTED))))


def _features_detail(text: bytes) -> str | None:
    """What is wrong with one object of features, None if it is valid."""
    try:
        named = decode_json(_any.decode, text)
    except InvalidJson as error:
        return error.detail if text.startswith(b"{") else "must be an object of names and numbers"
    for name, value in named.items():
        if not 1 <= len(name) <= MAX_TEXT:
            return f"the name {name[:_SHOWN]!r} must have 1 to {MAX_TEXT} characters"
        if isinstance(value, bool) or not isinstance(value, int | float):
            return f"the value of {name[:_SHOWN]!r} is not a number"
    try:
        decode_json(_one.decode, text)
    except InvalidJson as error:
        return error.detail
    times = Counter(msgspec.json.decode(name, type=str) for name in STRING.findall(text))
    repeated = next((name for name, count in times.items() if count > 1), None)
    return None if repeated is None else f"the name {repeated[:_SHOWN]!r} is repeated"


_TEXT, _VECTORS = ("text",), ("indices",)
_NOTHING = msgspec.Raw(b"{}")


class BatchBuilder:
    """Builds batches of documents. It counts the documents, because one without an id is named by its position."""

    def __init__(self) -> None:
        self.position = 0
        self._parts: tuple[str, ...] = ()
        self._dense = DenseParts()

    def batch(self, documents: Sequence[Document]) -> Batch:
        """The batch of these documents; raises InvalidDocuments for one that shares no part with earlier ones."""
        rows = self._rows(documents)
        ids, labels, words = [d.id for d in documents], [d.label for d in documents], [d.drawn for d in documents]
        if float in set(map(type, labels)):
            self._refuse(documents, map(_label_fault, labels))
            labels = [int(label) if isinstance(label, float) else label for label in labels]
        if int in set(map(type, ids)):
            ids = [None if id is None else str(id) for id in ids]
        self.position += len(documents)
        given = cast(list[str | None], ids) if any(ids) else None
        draws = (Draw.UNKNOWN if word is None else Draw.of(word) for word in words)
        drawn = np.fromiter(draws, np.int8, len(words)) if any(words) else None
        lists = LabelLists([document.labels for document in documents], [document.excluded for document in documents])
        votes = [document.votes for document in documents]
        weights = [document.weight for document in documents]
        return Batch(
            rows,
            cast(list[Label | None], labels),
            given,
            drawn,
            _extra_fields(documents),
            None if lists.applied.count(None) == lists.excluded.count(None) == len(documents) else lists,
            [{voter: vote for voter, vote in (each or {}).items() if vote is not None} for each in votes]
            if any(votes)
            else None,
            None
            if weights.count(None) == len(documents)
            else np.array([1.0 if weight is None else weight for weight in weights]),
        )

    def _rows(self, documents: Sequence[Document]) -> Rows:
        given = list(map(_given_parts, documents))
        if not self._parts or set(given) != {self._parts}:
            self._refuse(documents, map(self._part_fault, given))
        alone = ("values", "are allowed only beside indices")
        self._refuse(
            documents, [alone if each.values is not None and each.indices is None else None for each in documents]
        )
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

    def _part_fault(self, parts: tuple[str, ...]) -> tuple[str, str] | None:
        """Field and detail of a document that does not fit earlier ones, or None; called in their order."""
        if not parts:
            return field_of(
                self._parts[0]
            ) if self._parts else "text", f"is missing or null; a document has at least one of {', '.join(PARTS)}"
        if self._parts and not set(parts) & set(self._parts):
            detail = (
                f"earlier documents have {in_words(self._parts)}; a document may have more parts or fewer, but "
                "shares one with those before it"
            )
            return field_of(parts[0]), detail
        self._parts = tuple(dict.fromkeys([*self._parts, *parts]))
        return None

    def _vectors(self, documents: Sequence[Document]) -> SparseRows:
        indices = [document.indices or [] for document in documents]
        values = [
            [1.0] * len(each) if document.values is None else document.values
            for document, each in zip(documents, indices, strict=True)
        ]
        lengths, n_values = list(map(len, indices)), list(map(len, values))
        if n_values != lengths:
            self._refuse(
                documents,
                [
                    None if given == wanted else ("values", f"has {given} numbers, but indices has {wanted}")
                    for given, wanted in zip(n_values, lengths, strict=True)
                ],
            )
        return rows_of(np.array([0, *accumulate(lengths)]), joined(indices, "I"), joined(values, "f"))

    def _named(self, documents: Sequence[Document]) -> NamedRows:
        features = [document.features if is_given(document.features) else _NOTHING for document in documents]
        try:
            return named_rows(features)
        except InvalidJson as error:
            details = [_features_detail(bytes(each)) for each in features]
            self._refuse(documents, [None if each is None else ("features", each) for each in details])
            raise refused(error.detail, "features") from None

    def _refuse(self, documents: Sequence[Document], faults: Iterable[tuple[str, str] | None]) -> None:
        """Raises InvalidDocuments for the first documents that have a fault, given as field and detail."""
        found = list(faults)
        if any(found):
            refuse(
                Fault(place if document.id is None else str(document.id), *fault)
                for place, (document, fault) in enumerate(zip(documents, found, strict=True), self.position)
                if fault is not None
            )


def _extra_fields(documents: Sequence[Document]) -> ExtraFields | None:
    given = [document.fields for document in documents]
    if not any(given):
        return None
    names = list(dict.fromkeys(chain.from_iterable(fields for fields in given if fields)))
    check_limit(len(names), "names of extra fields", MAX_NAMES, LEAVE_OUT)
    return ExtraFields(names, [[fields.get(name) for name in names] if fields else () for fields in given])


def _label_fault(label: str | float | None) -> tuple[str, str] | None:
    if isinstance(label, float) and not (label.is_integer() and abs(label) <= LARGEST_WHOLE):
        return "label", f"{label!r} is a float with a fraction; a label is a text or an integer"
    return None


def _given_parts(document: Document) -> tuple[str, ...]:
    """The parts that a document has; null counts as absent."""
    if document.vectors is None and document.vector is None and not document.features:
        if document.text is None:
            return _VECTORS if document.indices is not None else ()
        if document.indices is None:
            return _TEXT
    found = ["text"] if document.text is not None else []
    found += ["features"] if is_given(document.features) else []
    found += ["indices"] if document.indices is not None else []
    found += [DENSE] if document.vector is not None else []
    return (
        *found,
        *(f"{DENSE}.{name}" for name, vector in sorted((document.vectors or {}).items()) if vector is not None),
    )
