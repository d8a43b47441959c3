"""The columns of a table (text, label, id, votes and so on, and the treatment of others), and documents from its rows:
texts, several labels, votes and weights in the cells.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import isnan, nan
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.codecs.base import COLUMNS, EXTRA_REMEDY, SEPARATOR, Column, Reading
from app.errors import InvalidRequest
from core.documents.kinds import TextRows
from core.documents.votes import Vote
from core.errors import MAX_FAULTS, Fault, InvalidDocuments, did_you_mean, refuse, refused
from storage.records import Label
from storage.repositories.datasets import Batch, ExtraFields
from storage.repositories.datasets.labels import LabelLists

_SHOWN = 40
MOST_TITLES = 16
"""rows above the names of the columns, at most"""
VOTE = "vote:"
"""What the names of columns with votes begin with, before the name of the voter."""
_MEANT: tuple[Column, ...] = ("text", "label", "id")
_INSTEAD: Mapping[Column, Column] = {"label": "labels", "labels": "label"}
"""columns in place of which another may be read: not both, unless the request asks for both"""
_WEIGHED = "the column 'weight' is read as the weights of labels; an empty ?weight= keeps it beside the documents"

_WITHOUT_LABELS = (
    "no column holds several: name one by ?labels=NAME, or leave separator out; what parts the columns of a file is "
    "found by itself"
)


class Header(NamedTuple):
    """The columns of a table: their number, the places of the columns that are read, by label of those that say whether
    one applies, by voter of those that have votes, and by name of the kept ones; the text between several labels.
    """

    width: int
    places: dict[Column, int]
    indicators: dict[str, int]
    votes: dict[str, int]
    kept: dict[str, int]
    separator: str
    notes: list[str]
    """what the sender should know about them, beside which are kept"""

    @property
    def warnings(self) -> list[str]:
        """Notes for the sender about the columns."""
        kept = f"columns that are kept beside the documents and not learned from: {listed(list(self.kept))}"
        return [*self.notes, kept] if self.kept else self.notes


def header_of(row: Sequence[str], reading: Reading, titles: Sequence[Sequence[str]] = ()) -> Header:
    """The header below these rows, which are left out; raises InvalidDocuments where a column that is read is missing
    or named twice, and for extra columns that are to be refused.
    """
    names = [name.strip() for name in row]
    separator = reading.separator or SEPARATOR
    labels = _columns_of_labels(names, reading, separator)
    places = _places(names, reading.columns, ("labels", "not") if labels else ())
    indicators = {label: _place(label, "labels", names, places) for label in labels}
    votes = _vote_columns(names, {*places.values(), *indicators.values()})
    read = {*places.values(), *indicators.values(), *votes.values()}
    others = {place: name for place, name in enumerate(names) if place not in read and name}
    match reading.extra:
        case "refuse" if others:
            raise refused(f"the table has the extra columns {listed([*others.values()])}; {EXTRA_REMEDY}")
        case "ignore":
            others = {}
    kept = dict(zip(_distinct(others.values()), others, strict=True))
    missing = [column for column in _MEANT if column not in places and reading.columns.get(column) != ""]
    meant = (f"no column is named {each!r}{advice}" for each in missing if (advice := did_you_mean(each, list(kept))))
    weighed = [_WEIGHED] if "weight" in places and "weight" not in reading.columns else []
    several = "labels" in places or indicators
    if reading.separator is not None and not (several or "not" in places):
        raise refused(f"stands between several labels, and {_WITHOUT_LABELS}", "separator")
    titled = [
        f"the names of the columns stand below {next(filter(None, row))[:_SHOWN]!r}, which is left out"
        for row in titles[:1]
    ]
    notes = [*titled, *weighed, *([] if several else islice(meant, 1))]
    return Header(len(names), places, indicators, votes, kept, separator, notes)


def titles_above(rows: Sequence[Sequence[str]], reading: Reading) -> int:
    """Number of the rows above the names of the columns: rows of one cell at most, as titles are, over a row of several
    that names the column of the texts. In a table of one column what looks like a name may be a document.
    """
    text = reading.columns.get("text", "text").lower()
    cells = [{each.strip().lower() for each in row} - {""} for row in rows[:MOST_TITLES]]
    place = next((place for place, row in enumerate(cells) if text in row or len(row) > 1), 0)
    return place if text in cells[place] and len(rows[place]) > 1 else 0


def _columns_of_labels(names: Sequence[str], reading: Reading, separator: str) -> list[str]:
    """The columns that are for a label each: those that the request names for labels, if it names several."""
    asked = reading.columns.get("labels", "")
    if separator not in asked or asked in names:
        return []
    if reading.columns.get("not"):
        raise refused("stands beside columns for a label each, where 0 says that one does not apply", "not")
    return [name.strip() for name in asked.split(separator)]


def _vote_columns(names: Sequence[str], read: Collection[int]) -> dict[str, int]:
    """The places of the columns with votes, by voter."""
    found: dict[str, int] = {}
    for place, name in enumerate(names):
        if name.startswith(VOTE) and place not in read:
            voter = name.removeprefix(VOTE).strip()
            if voter in found:
                raise refused(f"the first row names the column {name[:_SHOWN]!r} twice", name)
            found[voter] = place
    return found


def _places(names: Sequence[str], asked: Mapping[Column, str], without: Collection[Column]) -> dict[Column, int]:
    """The places of the columns that are read, but of some."""
    lower = [name.lower() for name in names]
    places: dict[Column, int] = {}
    for column in COLUMNS:
        name = asked.get(column, column)
        if column in without or (not name and column != "text"):
            continue
        read = {*places, *filter(asked.get, asked)}
        if column not in asked and (_INSTEAD.get(column) in read or (column == "not" and "labels" not in read)):
            continue
        found = _places_of(name, names)
        if column not in asked:
            found = [place for place in found or _places_of(name, lower) if place not in places.values()]
        if found or column in asked or column == "text":
            places[column] = _place(name, column, names, places, found)
    return places


def _place(
    name: str, column: Column, names: Sequence[str], read: Mapping[Any, int], found: Sequence[int] | None = None
) -> int:
    """The place of a column beside those that are read; raises InvalidDocuments."""
    found = _places_of(name, names) if found is None else found
    if len(found) > 1:
        raise refused(f"the first row names the column {name[:_SHOWN]!r} twice", column)
    if not found:
        advice = (
            did_you_mean(name, names)
            or f"; say which column it is by ?{column}=NAME, on the command line --{column} NAME"
        )
        raise refused(f"no column is named {name[:_SHOWN]!r}; the first row has {listed(names)}{advice}", column)
    holds = next((each for each, place in read.items() if place == found[0]), None)
    if holds is not None:
        detail = f"holds the {holds} already; an empty ?{column}= says that there is none"
        raise refused(f"the column {name[:_SHOWN]!r} {detail}", column)
    return found[0]


def _places_of(name: str, names: Sequence[str]) -> list[int]:
    return [place for place, each in enumerate(names) if each == name]


def _distinct(names: Iterable[str]) -> list[str]:
    """The names; a name that comes again has a number behind it."""
    found: dict[str, int] = {}
    """The numbers that were given behind each name: to count from 1 again would take time quadratic in the names."""
    for name in names:
        free = name
        while free in found:
            found[name] += 1
            free = f"{name}.{found[name]}"
        found[free] = 0
    return list(found)


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first of them if there are many."""
    shown = ", ".join(repr(name[:_SHOWN]) for name in names[:MAX_FAULTS])
    return f"{shown} and {len(names) - MAX_FAULTS} more" if len(names) > MAX_FAULTS else shown


_SEPARATORS = (SEPARATOR, "|", ",", "/", "~")
"""separators that are proposed"""
NONE_APPLIES = "[]"
"""Cell of a document that has none of the labels."""
_NO_OBJECT = 'begins like an object of JSON and is none; probabilities by class are written {"spam": 0.8}'
_TRUTHS = dict.fromkeys(("1", "1.0", "true", "yes"), True) | dict.fromkeys(("0", "0.0", "false", "no"), False)
_decode = msgspec.json.Decoder(dict[str, float]).decode
Row = list[str]
Name = Callable[[int], str | int]
"""Names the document of a row in a fault."""


def batch_of(rows: Sequence[Row], header: Header, position: int, where: Callable[[int], str]) -> Batch:
    """The documents of rows as long as the header, the first of them at this position.

    Raises InvalidDocuments, which tells where a row is that holds a fault.
    """
    try:
        return _batch(rows, header, position)
    except InvalidDocuments:
        refuse(_faults(rows, header, position, where))
        raise


def _faults(rows: Sequence[Row], header: Header, position: int, where: Callable[[int], str]) -> Iterator[Fault]:
    for place, row in enumerate(rows):
        try:
            _batch([row], header, position + place)
        except InvalidDocuments as error:
            yield from (each._replace(detail=f"{where(place)}: {each.detail}") for each in error.faults)


def _batch(rows: Sequence[Row], header: Header, position: int) -> Batch:
    columns: dict[Column, Sequence[Any]] = {
        column: _cells(rows, column, place) for column, place in header.places.items() if column != "text"
    }
    votes = {voter: _cells(rows, "votes", place) for voter, place in header.votes.items()}
    indicators = {label: _cells(rows, "labels", place) for label, place in header.indicators.items()}
    fields = None
    if header.kept:
        places = list(header.kept.values())
        kept: list[Sequence[str]] = (
            list(map(itemgetter(*places), rows)) if len(places) > 1 else [[row[places[0]]] for row in rows]
        )
        fields = ExtraFields(list(header.kept), kept)
    texts = [row[header.places["text"]] for row in rows]
    return batch_of_columns(texts, columns, votes, indicators, fields, header.separator, position)


def _cells(rows: Sequence[Row], column: Column | Literal["votes"], place: int) -> list[str | None]:
    """The cells of a column, None for empty ones; nobody means the spaces around a class, but an id stays as it is."""
    fields = list(map(itemgetter(place), rows))
    meant = {field: (field if column == "id" else plain) if (plain := field.strip()) else None for field in set(fields)}
    return list(map(meant.get, fields))


def batch_of_columns(
    texts: Sequence[str],
    columns: Mapping[Column, Sequence[Any]],
    votes: Mapping[str, Sequence[Any]],
    indicators: Mapping[str, Sequence[Any]],
    fields: ExtraFields | None,
    separator: str,
    position: int,
) -> Batch:
    """The documents of these columns, the first of them at this position.

    A cell is None for an empty one; votes are by voter, indicators by label. Raises InvalidDocuments.
    """
    ids = columns.get("id")

    def name(row: int) -> str | int:
        return (ids and ids[row]) or position + row

    lists = _indicated(indicators, name) if indicators else None
    if "labels" in columns or "not" in columns:
        nothing = [None] * len(texts)
        given = [[_labels(cell, separator) for cell in columns.get(each, nothing)] for each in ("labels", "not")]
        detail = f"has an empty label, in a list or beside a {separator!r}; {NONE_APPLIES} says that none applies"
        for field, each in zip(("labels", "not"), given, strict=True):
            refuse(Fault(name(row), field, detail) for row, labels in enumerate(each) if labels and "" in labels)
        lists = LabelLists(*given)
    weights = columns.get("weight")
    return Batch(
        TextRows.of(texts),
        columns.get("label") or [None] * len(texts),
        ids,
        fields=fields,
        label_lists=lists,
        votes=_votes(votes, name) if votes else None,
        weights=None if weights is None else _weights(weights, name),
    )


def _labels(cell: Any, separator: str) -> list[Label] | None:
    """The labels of a cell: a text, a list, or one integer."""
    if not isinstance(cell, str):
        return cell if cell is None or isinstance(cell, list) else [cell]
    return [] if cell.strip() == NONE_APPLIES else [label.strip() for label in cell.split(separator)]


def joined(labels: Sequence[Label], separator: str) -> str:
    """The cell of several labels, which the separator can part."""
    return separator.join(map(str, labels)) or NONE_APPLIES


def unparted(labels: Iterable[Label], separator: str) -> str | None:
    """The first of these labels that would not be the same again after it stood in a cell; None if all would."""
    return next(
        (
            name
            for name in map(str, labels)
            if any(_labels(joined(cell, separator), separator) != cell for cell in ([name], [name, name]))
        ),
        None,
    )


def check_separator(labels: Collection[Label], separator: str) -> None:
    """Raises InvalidRequest where a separator cannot part these labels in a cell; it names one that can."""
    odd = unparted(labels, separator)
    if odd is not None:
        others = (f"give another, as by ?separator={each}, or " for each in _SEPARATORS if not unparted(labels, each))
        detail = f"{separator!r} cannot part the label {odd!r}; {next(others, '')}ask for NDJSON or Parquet"
        raise InvalidRequest("separator", detail)


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
