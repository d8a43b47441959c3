"""The columns of a table: text, label, id, votes and so on, and the treatment of others."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from app.codecs.base import COLUMNS, MAX_FAULTS, Column, Reading
from app.codecs.faults import EXTRA_REMEDY, refused
from core.spelling import did_you_mean

_SHOWN = 40
VOTE = "vote:"
"""What the names of columns with votes begin with, before the name of the voter."""
_MEANT: tuple[Column, ...] = ("text", "label", "id")
_WEIGHED = "the column 'weight' is read as the weights of labels; an empty ?weight= keeps it beside the documents"


class Header(NamedTuple):
    """The columns of a table: their number, the places of the columns that are read, by label of those that say whether
    one applies, by voter of those that have votes, and by name of the kept ones.
    """

    width: int
    places: dict[Column, int]
    indicators: dict[str, int]
    votes: dict[str, int]
    kept: dict[str, int]
    notes: list[str]
    """what the sender should know about them, beside which are kept"""

    @property
    def warnings(self) -> list[str]:
        """Notes for the sender about the columns."""
        kept = f"columns that are kept beside the documents and not learned from: {listed(list(self.kept))}"
        return [*self.notes, kept] if self.kept else self.notes


def header_of(row: Sequence[str], reading: Reading) -> Header:
    """The header; raises InvalidDocuments where a column that is read is missing or named twice, and for extra columns
    that are to be refused.
    """
    names = [name.strip() for name in row]
    labels = _columns_of_labels(names, reading)
    places = _places(names, reading.columns, ("labels", "not") if labels else ())
    indicators = {label: _place(label, "labels", names, places) for label in labels}
    votes = _votes(names, {*places.values(), *indicators.values()})
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
    return Header(len(names), places, indicators, votes, kept, [*weighed, *([] if several else islice(meant, 1))])


def _columns_of_labels(names: Sequence[str], reading: Reading) -> list[str]:
    """The columns that are for a label each: those that the request names for labels, if it names several."""
    asked = reading.columns.get("labels", "")
    if reading.separator not in asked or asked in names:
        return []
    if reading.columns.get("not"):
        raise refused("stands beside columns for a label each, where 0 says that one does not apply", "not")
    return [name.strip() for name in asked.split(reading.separator)]


def _votes(names: Sequence[str], read: Collection[int]) -> dict[str, int]:
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
        if column not in asked and not _is_for(column, {*places, *filter(asked.get, asked)}):
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


def _is_for(column: Column, read: Collection[Column]) -> bool:
    """Whether a column of this name is read without being asked for, beside those that are."""
    if column == "not":
        return "labels" in read
    return {"label": "labels", "labels": "label"}.get(column) not in read


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
