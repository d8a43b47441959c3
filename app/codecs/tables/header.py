"""The columns of a table: text, label, id, votes and so on, and the treatment of others."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from app.codecs.base import COLUMNS, MAX_FAULTS, Column, Reading
from app.codecs.faults import EXTRA_REMEDY, refused
from core.spelling import did_you_mean

_SHOWN = 40
VOTE = "vote:"
"""What the names of columns with votes begin with, before the name of the voter."""
_MEANT: tuple[Column, ...] = ("text", "label", "id")
_WEIGHED = "the column 'weight' is read as the weights of labels; an empty ?weight= keeps it beside the documents"


class Header(NamedTuple):
    """The columns of a table: their number, the places of the columns that are read, by voter of those that have votes,
    and by name of the kept ones.
    """

    width: int
    places: dict[Column, int]
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
    places = _places(names, reading.columns)
    votes = _votes(names, places.values())
    read = {*places.values(), *votes.values()}
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
    return Header(len(names), places, votes, kept, [*weighed, *([] if "labels" in places else islice(meant, 1))])


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


def _places(names: Sequence[str], asked: Mapping[Column, str]) -> dict[Column, int]:
    lower = [name.lower() for name in names]
    places: dict[Column, int] = {}
    for column in COLUMNS:
        name = asked.get(column, column)
        if not name and column != "text":
            continue
        if column not in asked and not _is_for(column, {*places, *filter(asked.get, asked)}):
            continue
        found = _places_of(name, names)
        if column not in asked:
            found = [place for place in found or _places_of(name, lower) if place not in places.values()]
        if len(found) > 1:
            raise refused(f"the first row names the column {name[:_SHOWN]!r} twice", column)
        if found:
            holds = next((each for each, place in places.items() if place == found[0]), None)
            if holds is not None:
                raise refused(
                    f"the column {name[:_SHOWN]!r} holds the {holds} already; an empty ?{column}= says that there is "
                    "none",
                    column,
                )
            places[column] = found[0]
        elif column in asked or column == "text":
            advice = (
                did_you_mean(name, names)
                or f"; say which column it is by ?{column}=NAME, on the command line --{column} NAME"
            )
            raise refused(f"no column is named {name[:_SHOWN]!r}; the first row has {listed(names)}{advice}", column)
    return places


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
