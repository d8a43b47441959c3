"""Waiting for a store that is full or away, so that no job fails or is computed again for it."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from workers.errors import StoreDamaged, StoreUnavailable

T = TypeVar("T")
_FIRST_SECONDS = 0.1
_LONGEST_SECONDS = 1.0
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Patience:
    """Repeats what a store refuses, for ``seconds`` in all."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def insist(self, act: Callable[[], T], stop: Callable[[], bool]) -> T:
        """What ``act`` returns once the store allows it; its StoreUnavailable when ``stop`` says so or patience has run out.

        What is damaged stays so: StoreDamaged is raised at once.
        """
        pause = _FIRST_SECONDS
        while True:
            try:
                return act()
            except StoreDamaged:
                raise
            except StoreUnavailable as error:
                if self._left <= 0 or stop():
                    raise
                if pause == _FIRST_SECONDS:
                    _log.warning("waiting for the store", error=str(error), seconds=round(self._left))
            time.sleep(min(pause, self._left))
            self._left -= pause
            pause = min(2 * pause, _LONGEST_SECONDS)
