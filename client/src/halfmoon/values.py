"""Single values of tables, in the types of JSON: labels, ids and texts, with all that stands for nothing."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from halfmoon.errors import InvalidData

_MISSING = ("NAType", "NaTType")
"""Types of what pandas has for missing values, beside NaN and None."""


def each_of(value_of: Callable[[Any], Any], values: Iterable[Any], n_before: int = 0) -> Iterator[Any]:
    """What becomes of each value; raises InvalidData with the number of its document, as a person counts."""
    for number, value in enumerate(values, n_before + 1):
        try:
            yield value_of(value)
        except InvalidData as error:
            raise InvalidData(f"document number {number}: {error}") from None


def label_of(value: Any) -> str | int | None:
    """A label; None for a missing one: None, NaN, an empty text. Raises InvalidData."""
    if value is None or type(value) is str:
        return value or None
    if type(value) is int:
        return value
    if is_missing(value):
        return None
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, float) and plain.is_integer():
        return int(plain)
    if isinstance(plain, bool):
        raise InvalidData(
            f"the label {plain} is a truth value; a label is a text or an integer, as labels.astype(str) makes them"
        )
    if isinstance(value, list | tuple | set):
        raise InvalidData(
            f"the label {value!r:.60} is {type(value).__name__}; a document has one label, a text or an integer; "
            "several are labels="
        )
    if not isinstance(plain, str | int):
        raise InvalidData(f"the label {value!r:.60} is {type(value).__name__}; a label is a text or an integer")
    return label_of(str(plain) if isinstance(plain, str) else int(plain))


def labels_of(value: Any) -> list[str | int] | None:
    """All labels of a document, None where they are not known; raises InvalidData."""
    if value is None or is_missing(value):
        return None
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidData(
            f"labels: {value!r:.60} is {type(value).__name__}; give a list of labels, [] where none applies; "
            "one label a document is label="
        )
    labels = [label_of(each) for each in value]
    if None in labels:
        raise InvalidData(f"labels: {value!r:.60} has a missing label in it; leave it out")
    return [label for label in labels if label is not None]


def weight_of(value: Any) -> float | None:
    """The weight of a label, None for a missing one; raises InvalidData."""
    if value is None or is_missing(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidData(f"the weight {value!r:.60} is {type(value).__name__}, no number") from None


def vote_of(value: Any) -> Any:
    """A vote, a class or probabilities by class; None of one who abstains."""
    return dict(value) if isinstance(value, Mapping) else label_of(value)


def id_of(value: Any) -> str | None:
    """An id; None for a missing one: the position of its document is its id then."""
    if value is None or is_missing(value):
        return None
    plain = value.item() if hasattr(value, "item") else value
    return str(int(plain) if isinstance(plain, float) and plain.is_integer() else plain) or None


def text_of(value: Any) -> str:
    """A text; empty for a missing one. Raises InvalidData."""
    if isinstance(value, str):
        return str(value)
    if value is None or is_missing(value):
        return ""
    raise InvalidData(
        f"the text {value!r:.60} is {type(value).__name__}, no text{'; decode it' if isinstance(value, bytes) else ''}"
    )


def plain_of(value: Any) -> Any:
    """A value that is kept beside a document, as JSON has it: numbers as they are, dates and all else as text.

    None for a missing one.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if is_missing(value):
        return None
    plain = value.tolist() if hasattr(value, "dtype") else value
    if isinstance(plain, str | bool | int | float | list | dict):
        return plain
    return plain.isoformat() if hasattr(plain, "isoformat") else str(plain)


def json_of(value: Any) -> Any:
    """A value or an array of NumPy, such as a vector, in a type of JSON; raises InvalidData where there is none."""
    if type(value).__module__ == "numpy":
        return value.tolist()
    raise InvalidData(
        f"{value!r:.60} is {type(value).__name__}, which a request cannot hold; give texts, numbers, lists or dicts"
    )


_encoder = msgspec.json.Encoder(enc_hook=json_of)


def encode(value: Any, *, lines: bool = False) -> bytes:
    """JSON of a value, or of each of its entries on a line of its own; raises InvalidData for what JSON cannot hold."""
    try:
        return _encoder.encode_lines(value) if lines else _encoder.encode(value)
    except UnicodeEncodeError as error:
        raise InvalidData(
            f"the text {error.object[max(0, error.start - 20) : error.end + 20]!r} has a character that is none of "
            "Unicode, as of bytes that were decoded by errors='surrogateescape'; decode them by their encoding, or by "
            "errors='replace'"
        ) from None


def in_path(what: str, name: Any) -> str:
    """A name or an id as a part of an address; raises InvalidData for text that would change the address."""
    if not isinstance(name, str) or not name or set(name) & set("/?#%"):
        raise InvalidData(f"{what} {name!r:.60}: give its name or id, a text without / ? # %")
    return name


def model_name(name: Any) -> str:
    """The name of a model to train; raises InvalidData before data of this name are sent."""
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]{0,127}", name):
        raise InvalidData(
            f"model {name!r:.60}: a name has 1 to 128 letters, digits, '.', '_' or '-', the first a letter or a digit"
        )
    return name


def is_missing(value: Any) -> bool:
    """Whether a value stands for nothing: NaN, NA, NaT."""
    return (
        type(value).__name__ in _MISSING
        or (isinstance(value, float) and value != value)
        or (getattr(value, "ndim", None) == 0 and bool(value != value))
    )
