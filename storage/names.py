"""Names that users choose, and ids that the service makes."""

import re
import secrets
import time
from base64 import b32hexencode
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from typing import TypeVar

from storage.errors import InvalidName

T = TypeVar("T")
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"
"""Pattern of names, which ids match, too."""
TITLE = r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f\x85\u2028\u2029]{0,126}[^\s\x00-\x1f\x7f])?"
"""Pattern of names of datasets, which are no part of an address: a line in any script."""
_VERSION_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
VERSION_END = 2**31
"""Number that no version has, nor a greater one."""
_RANDOM_BYTES = 9


def check_name(what: str, name: str) -> str:
    """The name, if it is valid for a model, an alias, a dataset or a key; raises InvalidName."""
    if re.fullmatch(TITLE if what == "dataset" else NAME, name) is None:
        raise InvalidName(what, name)
    return name


def is_name(text: str) -> bool:
    """Whether a text is a valid name."""
    return re.fullmatch(NAME, text) is not None


def new_id(prefix: str) -> str:
    """A new id such as ``job-06k2m…``, which sorts by the millisecond at which it was made and cannot be guessed."""
    return _id_of(prefix, time.time_ns() // 1_000_000, secrets.token_bytes(_RANDOM_BYTES))


def earliest_id(prefix: str, seconds_ago: float) -> str:
    """The first id, in their order, that can have been made so many seconds ago or later."""
    return _id_of(prefix, max(0, int((time.time() - seconds_ago) * 1000)), bytes(_RANDOM_BYTES))


def _id_of(prefix: str, milliseconds: int, rest: bytes) -> str:
    return f"{prefix}-{b32hexencode(milliseconds.to_bytes(6, 'big') + rest).decode().lower()}"


def is_id(prefix: str, text: str) -> bool:
    """Whether ``new_id(prefix)`` can have made this text."""
    return _id_pattern(prefix).fullmatch(text) is not None


@cache
def _id_pattern(prefix: str) -> re.Pattern[str]:
    # one is asked for each name of each list
    return re.compile(rf"{prefix}-[0-9a-v]{{24}}")


def numbers_in(names: Iterable[str], ending: str = ".json") -> set[int]:
    """The numbers, from 1 on, of names such as ``12.json``; other names are passed over."""
    pattern = re.compile(rf"([1-9]\d{{0,8}}){re.escape(ending)}")
    return {int(match[1]) for match in map(pattern.fullmatch, names) if match}


def version_number(text: str) -> int | None:
    """The number of a version that a text is; None if it is none, however many digits it has."""
    number = int(text) if _VERSION_NUMBER.fullmatch(text) else VERSION_END
    return number if number < VERSION_END else None


def first_page(found: Iterable[T], limit: int, cursor: Callable[[T], str]) -> tuple[list[T], str | None]:
    """The first ``limit`` entries, and the cursor of the next page; None after the last."""
    page = list(islice(found, limit + 1))
    return page[:limit], cursor(page[limit - 1]) if len(page) > limit else None


def age_seconds(id: str) -> float:
    """Seconds since an id was made, by the clock of the machine that made it, in steps of a quarter of a second."""
    # eight characters hold 40 of the 48 bits of the milliseconds: steps of 256 ms
    return time.time() - (int(id.rpartition("-")[2][:8], 32) << 8) / 1000
