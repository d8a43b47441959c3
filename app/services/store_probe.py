"""Whether the store can be written, asked at most once a second: a probe writes a file, and anybody may ask for
readiness.
"""

import threading
import time
from collections.abc import Callable

_SECONDS = 1.0


class StoreProbe:
    """Remembers the last answer of ``probe`` for a second. Callers that come meanwhile wait for it."""

    def __init__(self, probe: Callable[[], bool], clock: Callable[[], float] = time.monotonic) -> None:
        self._probe = probe
        self._clock = clock
        self._lock = threading.Lock()
        self._writable = False
        self._until = float("-inf")

    def writable(self) -> bool:
        """Whether the store could be written within the last second."""
        with self._lock:
            if self._clock() >= self._until:
                self._writable = self._probe()
                self._until = self._clock() + _SECONDS
            return self._writable
