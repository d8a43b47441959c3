"""How objects show themselves: tables in notebooks, a line with the progress of a job in terminals."""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice
from typing import Any

_ROWS = 20
_NAMED = 5
_WIDTH = 24


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as HTML, its first rows."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_text(value))}</td>' for value in row)}</tr>" for row in islice(rows, _ROWS)
    )
    return f"<p>{escape(title)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def tally(values: Iterable[Any]) -> str:
    """How often each value is there, the most frequent first: ``27 ham, 3 spam``."""
    return listed(f"{count} {value}" for value, count in Counter(values).most_common())


def listed(names: Iterable[Any]) -> str:
    """The first of some names, and how many more there are."""
    shown = [*map(str, names)]
    more = len(shown) - _NAMED
    return ", ".join(shown[:_NAMED]) + (f" and {more} more" if more > 0 else "") if shown else "none"


def pairs(title: str, values: dict[str, Any]) -> str:
    """Names and values as HTML."""
    return table(title, ("", ""), values.items())


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


class ProgressLine:
    """A line that follows a job: a bar, the time that is left, and the phase."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._started = time.monotonic()
        self._last = ""

    def show(self, fraction: float, phase: str) -> None:
        """Write the line anew, if it changes."""
        filled = round(fraction * _WIDTH)
        line = f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {fraction:4.0%}  {self._left(fraction)}{phase}"
        if self._shown and line != self._last:
            print(f"\r{line[:110]:110}", end="", file=sys.stderr, flush=True)
            self._last = line

    def end(self, words: str) -> None:
        """End the line with how the job ended."""
        if self._shown:
            print(f"\r{words[:110]:110}", file=sys.stderr, flush=True)

    def _left(self, fraction: float) -> str:
        passed = time.monotonic() - self._started
        if passed < 2 or not 0.05 < fraction < 1:
            return ""
        return f"{passed * (1 - fraction) / fraction:.0f} s left, "
