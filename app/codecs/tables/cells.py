"""Documents from rows of text, and several labels, votes and weights in the cells of any table."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import isnan, nan
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.codecs.base import Column
from app.codecs.faults import refuse
from app.codecs.tables.header import VOTE, Header
from core.documents.kinds import TextRows
from core.documents.votes import Vote
from core.errors import Fault, InvalidDocuments
from storage.records import Label
from storage.repositories.datasets import Batch, ExtraFields
from storage.repositories.datasets.batch import LabelLists

NONE_APPLIES = "[]"
"""Cell of a document that has none of the labels."""
_NO_OBJECT = 'begins like an object of JSON and is none; probabilities by class are written {"spam": 0.8}'
_TRUTHS = dict.fromkeys(("1", "1.0", "true", "yes"), True) | dict.fromkeys(("0", "0.0", "false", "no"), False)
_decode = msgspec.json.Decoder(dict[str, float]).decode
Row = list[str]
Name = Callable[[int], str]
"""Names the document of a row in a fault."""


class Known(NamedTuple):
    """What cells say of their documents, as a batch has it."""

    label_lists: LabelLists | None
    votes: list[Mapping[str, Vote] | None] | None
    weights: NDArray[np.float64] | None


def batch_of(rows: Sequence[Row], header: Header, separator: str, position: int, where: Callable[[int], str]) -> Batch:
    """The documents of rows as long as the header, the first of them at this position.

    Raises InvalidDocuments, which tells where a row is that holds a fault.
    """
    try:
        return _batch(rows, header, separator, position)
    except InvalidDocuments:
        refuse(_faults(rows, header, separator, position, where))
        raise


def _faults(
    rows: Sequence[Row], header: Header, separator: str, position: int, where: Callable[[int], str]
) -> Iterator[Fault]:
    for place, row in enumerate(rows):
        try:
            _batch([row], header, separator, position + place)
        except InvalidDocuments as error:
            yield from (each._replace(detail=f"{where(place)}: {each.detail}") for each in error.faults)


def _batch(rows: Sequence[Row], header: Header, separator: str, position: int) -> Batch:
    columns: dict[Column, Sequence[Any]] = {
        column: _cells(rows, place) for column, place in header.places.items() if column != "text"
    }
    ids = columns.get("id", [None] * len(rows))
    votes = {voter: _cells(rows, place) for voter, place in header.votes.items()}
    indicators = {label: _cells(rows, place) for label, place in header.indicators.items()}
    known = known_in(columns, votes, indicators, separator, lambda row: ids[row] or str(position + row))
    return Batch(
        TextRows.of([row[header.places["text"]] for row in rows]),
        columns.get("label") or [None] * len(rows),
        columns.get("id"),
        fields=_kept(rows, header),
        **known._asdict(),
    )


def _cells(rows: Sequence[Row], place: int) -> list[str | None]:
    """The cells of a column, None for empty ones."""
    fields: list[str | None] = list(map(itemgetter(place), rows))
    empty = {field for field in set(fields) if not field or field.isspace()}
    return [None if field in empty else field for field in fields] if empty else fields


def _kept(rows: Sequence[Row], header: Header) -> ExtraFields | None:
    if not header.kept:
        return None
    places = list(header.kept.values())
    values: list[Sequence[str]] = (
        list(map(itemgetter(*places), rows)) if len(places) > 1 else [[row[places[0]]] for row in rows]
    )
    return ExtraFields(list(header.kept), values)


def known_in(
    columns: Mapping[Column, Sequence[Any]],
    votes: Mapping[str, Sequence[Any]],
    indicators: Mapping[str, Sequence[Any]],
    separator: str,
    name: Name,
) -> Known:
    """What the cells of these columns say, None for an empty one; votes are by voter, indicators by label.

    Raises InvalidDocuments.
    """
    lists = _indicated(indicators, name) if indicators else None
    if "labels" in columns or "not" in columns:
        nothing = [None] * len(next(iter(columns.values())))
        given = [[_labels(cell, separator) for cell in columns.get(each, nothing)] for each in ("labels", "not")]
        detail = f"has an empty label beside a {separator!r}; {NONE_APPLIES} says that none applies"
        for field, each in zip(("labels", "not"), given, strict=True):
            refuse(Fault(name(row), field, detail) for row, labels in enumerate(each) if labels and "" in labels)
        lists = LabelLists(*given)
    weights = columns.get("weight")
    return Known(lists, _votes(votes, name) if votes else None, None if weights is None else _weights(weights, name))


def _labels(cell: Any, separator: str) -> list[Label] | None:
    """The labels of a cell: a text, a list, or one integer."""
    if not isinstance(cell, str):
        return cell if cell is None or isinstance(cell, list) else [cell]
    return [] if cell.strip() == NONE_APPLIES else [label.strip() for label in cell.split(separator)]


def _indicated(columns: Mapping[str, Sequence[Any]], name: Name) -> LabelLists:
    """The labels of columns that say whether one applies."""
    labels: list[list[Label] | None] = []
    excluded: list[list[Label] | None] = []
    known = [[_truth(cell, label, row, name) for row, cell in enumerate(cells)] for label, cells in columns.items()]
    for row, truths in enumerate(zip(*known, strict=True)):
        applied: list[Label] = [label for label, truth in zip(columns, truths, strict=True) if truth]
        whole = None not in truths
        if applied and not whole:
            detail = f"is empty, but {applied[0]!r} applies: where a label applies, write 0 or 1 for each other"
            refuse([Fault(name(row), [*columns][truths.index(None)], detail)])
        labels.append(applied if whole else None)
        excluded.append(
            None if whole else [label for label, truth in zip(columns, truths, strict=True) if truth is False]
        )
    return LabelLists(labels, excluded)


def _truth(cell: Any, label: str, row: int, name: Name) -> bool | None:
    """Whether a label applies, None where that is not known."""
    if cell is None or cell != cell:
        return None
    truth = _TRUTHS.get(str(cell).strip().lower())
    if truth is None:
        refuse(
            [
                Fault(
                    name(row),
                    label,
                    f"{cell!r:.40} does not say whether the label applies; write 1, true or yes, or 0, false or no, or "
                    "nothing where it is not known",
                )
            ]
        )
    return truth


def _votes(columns: Mapping[str, Sequence[Any]], name: Name) -> list[Mapping[str, Vote] | None]:
    found: list[Mapping[str, Vote] | None] = []
    for row, cells in enumerate(zip(*columns.values(), strict=True)):
        votes = {voter: cell for voter, cell in zip(columns, cells, strict=True) if cell is not None}
        for voter, cell in votes.items():
            if isinstance(cell, str) and cell.startswith("{"):
                try:
                    votes[voter] = _decode(cell)
                except msgspec.MsgspecError:
                    refuse([Fault(name(row), f"{VOTE}{voter}", _NO_OBJECT)])
        found.append(votes)
    return found


def _weights(cells: Sequence[Any], name: Name) -> NDArray[np.float64]:
    numbers = []
    for row, cell in enumerate(cells):
        number = nan
        with suppress(ValueError):
            number = 1.0 if cell is None else float(cell)
        if isnan(number):
            refuse([Fault(name(row), "weight", f"{cell!r:.40} is no number; an empty cell is the weight 1")])
        numbers.append(number)
    return np.array(numbers)
