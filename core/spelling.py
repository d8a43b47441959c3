"""The name that was probably meant, for errors about names that are not known."""

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 64
"""Characters of a name up to which similar names are searched: the search is quadratic in them."""

_ALIKE = 0.7
"""Least similarity, as difflib has it: 'lable' and 'label' have .8, 'text' and 'ticket' .6."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'label'?`` if a known name is similar, else empty."""
    lower = {each.lower(): each for each in known}
    similar = get_close_matches(name.lower(), lower, 1, _ALIKE) if len(name) <= _LONGEST else []
    return f"; did you mean {lower[similar[0]]!r}?" if similar else ""
