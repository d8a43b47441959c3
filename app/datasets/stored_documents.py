"""Stored documents in the form in which they were sent, for answers that show them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.documents.kinds import NamedRows, TextRows
from core.documents.rows import SparseRows
from workers.repositories.datasets import Documents

Fields = dict[str, Any]


def stored_documents(documents: Documents, positions: NDArray[np.int64]) -> dict[int, Fields]:
    """Id, content, label and draw of the documents at these positions, by position, in the order of ``positions``."""
    ascending = np.sort(positions)
    ids = dict(zip(ascending.tolist(), documents.ids.at(ascending.tolist()), strict=True))
    contents = dict(zip(ascending.tolist(), _contents(documents, ascending), strict=True))
    return {position: {"id": ids[position], **contents[position], **_label(documents, position)} for position in positions.tolist()}


def _contents(documents: Documents, ascending: NDArray[np.int64]) -> Iterator[Fields]:
    match documents.rows.taken(ascending):
        case TextRows() as texts:
            return ({"text": text} for text in texts)
        case NamedRows() as named:
            return ({"features": dict(zip(_names(named, row), _values(row), strict=True))} for row in _each(named.rows))
        case SparseRows() as rows:
            return ({"indices": _part(row, row.indices).tolist(), "values": _values(row)} for row in _each(rows))


def _each(rows: SparseRows) -> Iterator[SparseRows]:
    return (rows.between(row, row + 1) for row in range(rows.n_rows))


def _part(row: SparseRows, array: NDArray[Any]) -> NDArray[Any]:
    return array[int(row.indptr[0]) : int(row.indptr[-1])]


def _names(named: NamedRows, row: SparseRows) -> list[str]:
    return [named.names[column] for column in _part(row, row.indices).tolist()]


def _values(row: SparseRows) -> list[float]:
    """The values as the shortest decimals that are stored as the same numbers: 0.1, not 0.10000000149011612."""
    return [float(str(value)) for value in _part(row, row.values)]


def _label(documents: Documents, position: int) -> Fields:
    class_index = int(documents.class_indices[position])
    if class_index < 0:
        return {"label": None, "drawn": None}
    draw = Draw.UNKNOWN if documents.drawn is None else Draw(int(documents.drawn[position]))
    return {"label": documents.classes[class_index], "drawn": draw.word}
