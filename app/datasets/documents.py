"""Stored documents in the form of the upload, and whose they are to label: claims of people, and their shares."""

import itertools
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.services import Services
from core.documents.drawn import Draw
from core.documents.kinds import DENSE, NamedRows, PartRows, RowsOfKind, TextRows, field_of, is_dense
from core.documents.label_sets import EXCLUDED
from core.documents.rows import SparseRows
from storage.errors import RedisUnavailable
from storage.repositories.datasets import Documents, StoredFields

Fields = dict[str, Any]


def stored_documents(documents: Documents, positions: NDArray[np.int64], extra: StoredFields) -> dict[int, Fields]:
    """Id, content, labels, votes, weight, draw and extra fields of the documents at these positions, by position, in
    the order of ``positions``.
    """
    ascending = np.sort(positions)
    ids = documents.ids.by_position(ascending.tolist())
    contents = dict(zip(ascending.tolist(), _contents(documents, ascending), strict=True))
    beside = (
        {
            position: {"fields": fields}
            for position, fields in zip(ascending.tolist(), extra.taken(ascending), strict=True)
        }
        if extra
        else {}
    )
    known = dict(zip(ascending.tolist(), _known(documents, ascending), strict=True))
    found = positions.tolist()
    return {each: {"id": ids[each], **contents[each], **beside.get(each, {}), **known[each]} for each in found}


def _contents(documents: Documents, ascending: NDArray[np.int64]) -> Iterator[Fields]:
    rows = documents.rows.taken(ascending)
    if not isinstance(rows, PartRows):
        return _contents_of_kind(rows)
    held = {name: np.diff(part.indptr) > 0 for name, part in rows.parts.items()}
    fields = {
        name: _dense(part) if isinstance(part, SparseRows) and is_dense(name) else _contents_of_kind(part)
        for name, part in rows.parts.items()
    }
    return (
        _with_parts({name: next(each) for name, each in fields.items()}, {name: held[name][row] for name in held})
        for row in range(rows.n_rows)
    )


def _contents_of_kind(rows: RowsOfKind) -> Iterator[Fields]:
    match rows:
        case TextRows():
            return ({"text": text} for text in rows)
        case NamedRows():
            return (
                {
                    "features": dict(
                        zip(
                            [rows.names[column] for column in _part(row, row.indices).tolist()],
                            _values(row),
                            strict=True,
                        )
                    )
                }
                for row in _each(rows.rows)
            )
        case SparseRows():
            return ({"indices": _part(row, row.indices).tolist(), "values": _values(row)} for row in _each(rows))


def _dense(rows: SparseRows) -> Iterator[Fields]:
    """Dense vectors with their zeros."""
    for row in _each(rows):
        numbers = [0.0] * rows.n_features
        for index, value in zip(_part(row, row.indices).tolist(), _values(row), strict=True):
            numbers[index] = value
        yield {DENSE: numbers}


def _with_parts(parts: dict[str, Fields], held: dict[str, np.bool_]) -> Fields:
    """One document by the parts that it has."""
    found: Fields = {}
    for name, fields in parts.items():
        if not held[name]:
            continue
        if field_of(name) == "vectors":
            found.setdefault("vectors", {})[name.removeprefix(f"{DENSE}.")] = fields[DENSE]
        else:
            found |= fields
    return found


def _each(rows: SparseRows) -> Iterator[SparseRows]:
    return (rows.between(row, row + 1) for row in range(rows.n_rows))


def _part(row: SparseRows, array: NDArray[Any]) -> NDArray[Any]:
    return array[int(row.indptr[0]) : int(row.indptr[-1])]


def _values(row: SparseRows) -> list[float]:
    """The values as the shortest decimals that are stored as the same numbers: 0.1, not 0.10000000149011612."""
    return [float(str(value)) for value in _part(row, row.values)]


def _known(documents: Documents, ascending: NDArray[np.int64]) -> Iterator[Fields]:
    """Labels, draws, votes and weights of documents; votes and weights only where the dataset has some."""
    draws = itertools.repeat(0) if documents.drawn is None else documents.drawn[ascending].tolist()
    labeled = documents.labeled[ascending].tolist()
    drawn = (Draw(draw).word if known else None for known, draw in zip(labeled, draws, strict=False))
    classes = [*documents.classes, None]
    labels = (classes[class_index] for class_index in documents.class_indices[ascending].tolist())
    columns: dict[str, Iterable[Any]] = {"label": labels, "drawn": drawn}
    if documents.label_sets is not None:
        sets = documents.label_sets.taken(ascending)
        columns["labels"] = (each if known else None for each, known in zip(sets.sets(), labeled, strict=True))
        columns["not"] = sets.sets(EXCLUDED)
    if documents.votes is not None:
        columns["votes"] = documents.votes.taken(ascending).by_document()
    if documents.weights is not None:
        columns["weight"] = documents.weights[ascending].tolist()
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def claimed_by_others(services: Services, dataset: str, by: str | None) -> set[int]:
    """Positions of the documents that others than this person have claimed; none where nobody is named."""
    with suppress(RedisUnavailable):
        return set() if by is None else services.redis_state.claims.of_others(dataset, by)
    return set()


def claim(services: Services, dataset: str, positions: Collection[int], by: str | None, seconds: int) -> set[int]:
    """Claim documents for a person; positions of the documents that others were faster to claim.

    Claims of nobody, or of no seconds, are none.
    """
    with suppress(RedisUnavailable):
        return (
            set() if by is None or not seconds else services.redis_state.claims.claim(dataset, positions, by, seconds)
        )
    return set()


def are_of_others(services: Services, dataset: str, person: str | None, n_documents: int) -> NDArray[np.bool_]:
    """shape (n_documents,): whether a document is in the share of another person; raises NotFound.

    A number that looks random decides by the position, so a share stays the same, and is a random sample of the
    documents. Who has no share may label all of them.
    """
    shares = {} if person is None else services.datasets.profile(dataset).shares
    if person is None or person not in shares:
        return np.zeros(n_documents, bool)
    ends = np.cumsum([*shares.values()])
    drawn = mixed(np.arange(n_documents, dtype=np.uint64)) / np.float64(1 << 64) * ends[-1]
    owners = np.minimum(np.searchsorted(ends, drawn, side="right"), len(ends) - 1)
    return np.asarray(owners != list(shares).index(person))


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers that look random, all different: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    with np.errstate(over="ignore"):
        mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))
