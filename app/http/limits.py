"""Limits on uploads, bytes of buffered bodies and datasets being scored at a time.

A request that would exceed a limit is answered with 429 and these headers (draft-ietf-httpapi-ratelimit-headers):

- ``RateLimit-Policy`` names the limit and its size,
- ``RateLimit`` reports what is left of it,
- ``Retry-After`` says when to try again.
"""

import threading
from collections import Counter
from contextlib import AbstractContextManager

from app.errors import TooManyRequests

_RETRY_SECONDS = 1
"""A reservation is held by a request that is being answered, so it is soon given back."""


class Limit:
    """A limit on something that requests hold for a while, in all and of each caller. It may be used from the event
    loop and from threads.

    A caller is an API key, or an address where no keys are required (``app.http.access.caller_of``). So no caller can
    hold all there is.
    """

    def __init__(self, name: str, unit: str, most: int, most_per_caller: int) -> None:
        self._name = name
        self._unit = unit
        self._most = most
        self._most_per_caller = most_per_caller
        self.used = 0
        """sum of all reservations"""
        self._by_caller: Counter[str] = Counter()
        self._lock = threading.Lock()

    def reserve(self, caller: str, size: int = 0) -> "Reservation":
        """A reservation of this size, which can grow. Raises TooManyRequests."""
        reservation = Reservation(self, caller)
        if size:
            reservation.grow(size)
        return reservation

    def acquire(self, caller: str, size: int) -> None:
        """Add to the amount in use; raises TooManyRequests."""
        with self._lock:
            used, own = self.used, self._by_caller[caller]
            if used + size > self._most:
                raise TooManyRequests(self._name, self._unit, self._most, self._most - used, _RETRY_SECONDS)
            if own + size > self._most_per_caller:
                name, most = f"{self._name} of one caller", self._most_per_caller
                raise TooManyRequests(name, self._unit, most, most - own, _RETRY_SECONDS)
            self.used = used + size
            self._by_caller[caller] = own + size

    def release(self, caller: str, size: int) -> None:
        """Take from the amount in use what was acquired."""
        with self._lock:
            self.used -= size
            self._by_caller[caller] -= size
            if not self._by_caller[caller]:
                del self._by_caller[caller]


class Reservation(AbstractContextManager["Reservation"]):
    """The share of one request in a limit. As a context manager it is given back at the end of the block."""

    def __init__(self, limit: Limit, caller: str) -> None:
        self._limit = limit
        self._caller = caller
        self.size = 0

    def grow(self, size: int) -> None:
        """Reserve so much more; raises TooManyRequests."""
        self._limit.acquire(self._caller, size)
        self.size += size

    def release(self) -> None:
        """Give all of it back."""
        self._limit.release(self._caller, self.size)
        self.size = 0

    def __exit__(self, *error: object) -> None:
        self.release()
