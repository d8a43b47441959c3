"""Retries of the store: an attempt at a job calls it again while it fails, within a budget."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from storage.errors import StoreDamaged, StoreUnavailable

T = TypeVar("T")
_FIRST_DELAY_SECONDS = 0.1
_LONGEST_DELAY_SECONDS = 1.0
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class StoreRetry:
    """Budget of ``seconds`` for the retries of one attempt at a job, all its calls of the store together.

    Calls that fail count, and the delays between them. A call that hangs ends by the time-outs of the bucket, or of the
    mount.
    """

    def __init__(self, seconds: float, stop: Callable[[], bool]) -> None:
        self._left = seconds
        self._stop = stop

    def call(self, act: Callable[[], T], stop: Callable[[], bool] | None = None) -> T:
        """The result of ``act`` once the store allows it. The delay between two calls doubles from 0.1 s to 1 s.

        Raises StoreUnavailable when the budget is used up or ``stop`` (by default that of all calls) returns true,
        StoreDamaged at once: what is damaged stays so.
        """
        delay = _FIRST_DELAY_SECONDS
        while True:
            began = time.monotonic()
            try:
                return act()
            except StoreDamaged:
                raise
            except StoreUnavailable as error:
                self._left -= time.monotonic() - began
                if self._left <= 0 or (stop or self._stop)():
                    raise
                if delay == _FIRST_DELAY_SECONDS:
                    _log.warning("waiting for the store", error=str(error), seconds=round(self._left))
            time.sleep(min(delay, self._left))
            self._left -= delay
            delay = min(2 * delay, _LONGEST_DELAY_SECONDS)
