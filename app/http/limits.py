"""Limits on what requests hold at a time: uploads, bytes of buffered bodies, datasets being scored.

A request that would exceed a limit is answered with 429 and these headers (draft-ietf-httpapi-ratelimit-headers):

- ``RateLimit-Policy`` names the limit and its size,
- ``RateLimit`` reports what is left of it,
- ``Retry-After`` says when to try again.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import TooManyRequests

_RETRY_SECONDS = 1
"""A reservation is held by a request that is being answered, so it is soon given back."""


class Limit:
    """A limit on something that requests hold for a while. It may be used from the event loop and from threads."""

    def __init__(self, name: str, unit: str, most: int) -> None:
        self._name = name
        self._unit = unit
        self._most = most
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """Sum of all reservations."""
        return self._used

    @contextmanager
    def reserve(self, size: int = 0) -> Iterator["Reservation"]:
        """A reservation of this size, which can grow and is given back at the end of the block. Raises TooManyRequests."""
        reservation = Reservation(self)
        try:
            reservation.grow(size)
            yield reservation
        finally:
            with self._lock:
                self._used -= reservation.size

    def acquire(self, size: int) -> None:
        """Add to what is used; raises TooManyRequests."""
        with self._lock:
            if self._used + size > self._most:
                raise TooManyRequests(self._name, self._unit, self._most, self._most - self._used, _RETRY_SECONDS)
            self._used += size


class Reservation:
    """What one request holds of a limit."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self.size = 0

    def grow(self, size: int) -> None:
        """Reserve so much more; raises TooManyRequests."""
        self._limit.acquire(size)
        self.size += size
