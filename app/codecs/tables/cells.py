"""Several labels, votes and weights in the cells of a table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import nan
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.codecs.base import Column
from app.codecs.faults import refuse
from app.codecs.tables.header import VOTE
from core.documents.votes import Vote
from core.errors import Fault
from storage.records import Label
from storage.repositories.datasets.batch import LabelLists

NONE_APPLIES = "[]"
"""Cell of a document that has none of the labels."""
_decode = msgspec.json.Decoder(dict[str, float]).decode
Name = Callable[[int], str]
"""Names the document of a row in a fault."""


class Known(NamedTuple):
    """What cells say of their documents, as a batch has it."""

    label_lists: LabelLists | None
    votes: list[Mapping[str, Vote] | None] | None
    weights: NDArray[np.float64] | None


def known_in(
    columns: Mapping[Column, Sequence[Any]], votes: Mapping[str, Sequence[Any]], separator: str, name: Name
) -> Known:
    """What the cells of these columns say, None for an empty one; the votes are by voter. Raises InvalidDocuments."""
    weights = columns.get("weight")
    return Known(
        _lists(columns, separator, name) if "labels" in columns or "not" in columns else None,
        _votes(votes, name) if votes else None,
        None if weights is None else _weights(weights, name),
    )


def _lists(columns: Mapping[Column, Sequence[Any]], separator: str, name: Name) -> LabelLists:
    nothing = [None] * len(next(iter(columns.values())))
    lists = LabelLists(
        *([_labels(cell, separator) for cell in columns.get(each, nothing)] for each in ("labels", "not"))
    )
    detail = f"has an empty label beside a {separator!r}; {NONE_APPLIES} says that none applies"
    for field, given in zip(("labels", "not"), lists, strict=True):
        refuse(Fault(name(row), field, detail) for row, labels in enumerate(given) if labels and "" in labels)
    return lists


def _labels(cell: Any, separator: str) -> list[Label] | None:
    """The labels of a cell: a text, a list, or one integer."""
    if not isinstance(cell, str):
        return cell if cell is None or isinstance(cell, list) else [cell]
    return [] if cell.strip() == NONE_APPLIES else [label.strip() for label in cell.split(separator)]


def _votes(columns: Mapping[str, Sequence[Any]], name: Name) -> list[Mapping[str, Vote] | None]:
    found: list[Mapping[str, Vote] | None] = []
    for row, cells in enumerate(zip(*columns.values(), strict=True)):
        votes = {voter: cell for voter, cell in zip(columns, cells, strict=True) if cell is not None}
        for voter, cell in votes.items():
            if isinstance(cell, str) and cell.startswith("{"):
                votes[voter] = _probabilities(cell, f"{VOTE}{voter}", name(row))
        found.append(votes or None)
    return found


def _probabilities(cell: str, column: str, document: str) -> dict[str, float]:
    try:
        return _decode(cell)
    except msgspec.MsgspecError:
        detail = 'begins like an object of JSON and is none; probabilities by class are written {"spam": 0.8}'
        refuse([Fault(document, column, detail)])
        raise


def _weights(cells: Sequence[Any], name: Name) -> NDArray[np.float64]:
    numbers = [_number(cell) for cell in cells]
    refuse(_weight_faults(cells, numbers, name))
    return np.array(numbers)


def _weight_faults(cells: Sequence[Any], numbers: Sequence[float], name: Name) -> Iterator[Fault]:
    for row, (cell, number) in enumerate(zip(cells, numbers, strict=True)):
        if number != number:
            yield Fault(name(row), "weight", f"{cell!r:.40} is no number; an empty cell is the weight 1")


def _number(cell: Any) -> float:
    """The weight of a cell, NaN of one that has no number."""
    try:
        return 1.0 if cell is None else float(cell)
    except (TypeError, ValueError):
        return nan
