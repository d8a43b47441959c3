"""Periodic tasks of a gateway, in threads. ``app.services.wiring`` lists them."""

from collections.abc import Callable, Sequence

import structlog

from storage.errors import Unavailable
from storage.process.background import BackgroundThread

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_FIRST_DELAY = 1.0
_STOP_SECONDS = 5.0
"""a call that takes longer is left behind: each of these functions may be cut off anywhere"""


class PeriodicTask(BackgroundThread):
    """Calls functions every ``interval`` seconds in a thread of its own, while its block is entered.

    - The first call comes after ``first_delay`` seconds, or after one interval if that is shorter.
    - A function that fails does not keep the others from being called.
    - A store or Redis that does not answer is logged once, not at every call.
    """

    def __init__(
        self, name: str, functions: Sequence[Callable[[], object]], interval: float, first_delay: float = _FIRST_DELAY
    ) -> None:
        super().__init__(name, _STOP_SECONDS)
        self._functions = functions
        self._first_delay = first_delay
        self._interval = interval
        self._unavailable: set[int] = set()

    def _run(self) -> None:
        delay = min(self._interval, self._first_delay)
        while not self._done.wait(delay):
            delay = self._interval
            for index, function in enumerate(self._functions):
                try:
                    function()
                    self._unavailable.discard(index)
                except Unavailable as error:
                    if index not in self._unavailable:
                        _log.warning("a periodic task cannot run now", task=self._thread.name, error=str(error))
                    self._unavailable.add(index)
                except Exception:
                    _log.exception("a periodic task failed", task=self._thread.name)
