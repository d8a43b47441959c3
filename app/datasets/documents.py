"""Stored documents in the form of the upload."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.documents.kinds import DENSE, NamedRows, PartRows, RowsOfKind, TextRows, field_of, is_dense
from core.documents.label_sets import EXCLUDED
from core.documents.rows import SparseRows
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
        yield from _contents_of_kind(rows)
        return
    held = {name: np.diff(part.indptr) > 0 for name, part in rows.parts.items()}
    fields = {
        name: _dense(part) if isinstance(part, SparseRows) and is_dense(name) else _contents_of_kind(part)
        for name, part in rows.parts.items()
    }
    for row in range(rows.n_rows):
        found: Fields = {}
        for name, contents in fields.items():
            content = next(contents)
            if held[name][row] and field_of(name) == "vectors":
                found.setdefault("vectors", {})[name.removeprefix(f"{DENSE}.")] = content[DENSE]
            elif held[name][row]:
                found |= content
        yield found


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
