"""What a gateway does beside answering: looking for lost jobs every second, tidying up now and then."""

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import structlog

from workers.errors import Unavailable

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_FIRST_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0


class Rounds:
    """Calls functions in a thread, again and again while its block is entered; none that fails keeps the others from being called.

    The first round comes after ``first`` seconds at the latest.
    """

    def __init__(self, name: str, acts: Sequence[Callable[[], object]], seconds: float, first: float = _FIRST_SECONDS) -> None:
        self._acts = acts
        self._first = first
        self._seconds = seconds
        self._away: set[int] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        # a long act is left alone: whatever it does, it may be cut short anywhere
        self._thread.join(_PATIENCE_SECONDS)

    def _run(self) -> None:
        wait = min(self._seconds, self._first)
        while not self._stop.wait(wait):
            wait = self._seconds
            for place, act in enumerate(self._acts):
                self._try(place, act)

    def _try(self, place: int, act: Callable[[], object]) -> None:
        """Call one of the functions; that something does not answer is told once, not every second."""
        try:
            act()
            self._away.discard(place)
        except Unavailable as error:
            if place not in self._away:
                _log.warning("cannot look after the store and its jobs", error=str(error))
            self._away.add(place)
        except Exception:
            _log.exception("looking after the store and its jobs failed")
