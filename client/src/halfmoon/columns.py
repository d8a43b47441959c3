"""Columns of frames: which is read as what, and their values a slice at a time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import msgspec

from halfmoon.errors import InvalidData
from halfmoon.values import id_of, label_of, labels_of, weight_of

Column = str | Sequence[Any] | None
"""Name of a column, or its values."""


class Line(msgspec.Struct, omit_defaults=True):
    """A line of text."""

    text: str
    label: str | int | None = None
    id: str | None = None
    labels: list[str | int] | None = None
    weight: float | None = None
    votes: dict[str, Any] | None = None
    fields: dict[str, Any] | None = None


class Choice(NamedTuple):
    """The columns of text, label, id and so on, and the columns that are kept beside them."""

    text: str | None = None
    label: Column = None
    id: Column = None
    features: Sequence[str] | None = None
    fields: Sequence[str] | None = None
    extra: str | None = None
    labels: Any = None
    """name of the column with all labels, or lists of them, or an indicator matrix"""
    weight: Column = None
    votes: Mapping[str, Column] | None = None
    """by voter"""
    separator: str | None = None
    """text between several labels in a cell"""


VALUES: Mapping[str, Callable[[Any], Any]] = {
    "label": label_of,
    "id": id_of,
    "labels": labels_of,
    "weight": weight_of,
}
"""What becomes of the values of these columns."""
VOTE = "vote:"
"""What the names of columns with votes begin with."""


def names_of(frame: Any) -> list[str]:
    """The names of the columns of a frame."""
    names = (
        getattr(getattr(frame, "schema", None), "names", None)
        if type(frame).__module__.startswith("pyarrow")
        else frame.columns
    )
    return [str(name) for name in (frame.columns if names is None else names)]


def known_columns(choice: Choice, names: Sequence[str], n_rows: int) -> dict[str, str | Sequence[Any] | None]:
    """The columns of labels, ids and weights; where there is one of single labels, another of several is not read."""
    single = choice.labels is None and column_name(
        "label", "label" if choice.label is None and "label" in names else None, names
    )
    return {
        what: None
        if (what == "labels" and (single or choice.label is not None))
        or (what == "label" and choice.labels is not None)
        else values_in(what, getattr(choice, what), names, n_rows)
        for what in VALUES
    }


def rows_of(columns: Mapping[str, Iterable[Any]], n_rows: int) -> Iterable[dict[str, Any] | None]:
    """The values of each row by name, without those that are missing."""
    if not columns:
        return [None] * n_rows
    return (
        {name: value for name, value in zip(columns, row, strict=True) if value is not None} or None
        for row in zip(*columns.values(), strict=True)
    )


def numbers_in(frame: Any, name: str) -> Any:
    """The numbers of a column; raises InvalidData."""
    import numpy

    try:
        numbers = numpy.asarray(frame[name], dtype=numpy.float32)
    except (TypeError, ValueError) as error:
        raise InvalidData(f"features: the column {name!r} has what is no number: {error}") from None
    if numpy.isnan(numbers).any():
        raise InvalidData(f"features: the column {name!r} has gaps; fill them, as frame[{name!r}].fillna(0) does")
    return numbers


def column_name(what: str, given: str | None, names: Sequence[str]) -> str | None:
    """The name of a column: the given one, or the default if there is one of this name."""
    if given is None:
        given = what if what in names else None
    if given is not None and names.count(given) > 1:
        raise InvalidData(f"{what}: two columns are called {given!r}; rename one")
    if given is not None and given not in names:
        similar = [f"; did you mean {name!r}?" for name in get_close_matches(given, names, 1)]
        raise InvalidData(f"{what}: there is no column {given!r}{''.join(similar)}; there are {', '.join(names[:20])}")
    return given


def values_in(what: str, given: Column, names: Sequence[str], n_rows: int) -> str | Sequence[Any] | None:
    """The name of a column, or the values that were given in its place; raises InvalidData."""
    if given is None or isinstance(given, str):
        return column_name(what, given, names)
    if len(given) != n_rows:
        raise InvalidData(f"{what}: {len(given)} values for {n_rows} documents")
    return given


def slice_of(frame: Any, column: str | Sequence[Any] | None, start: int, stop: int) -> Iterable[Any]:
    """Some values of a column, None where there is none."""
    if column is None:
        return [None] * (stop - start)
    if not isinstance(column, str):
        return column[start:stop]
    series = frame[column]
    part = series.iloc[start:stop] if hasattr(series, "iloc") else series[start:stop]
    values: Iterable[Any] = part.to_pylist() if hasattr(part, "to_pylist") else part.to_list()
    return values
