"""Room for so much at a time. Whoever finds none is told to come again: 429, with what RateLimit headers say of it.

The headers are those of draft-ietf-httpapi-ratelimit-headers: ``RateLimit-Policy`` names a quota, ``RateLimit`` tells what is left of it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.errors import TooMany


class Room:
    """A quota of something held for a while, by requests on the event loop and by what threads do for them."""

    def __init__(self, name: str, unit: str, most: int) -> None:
        self._name = name
        self._unit = unit
        self._most = most
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """How much is taken now."""
        return self._used

    @contextmanager
    def place(self) -> Iterator["Place"]:
        """A place that can grow and is given back at the end of the block."""
        place = Place(self)
        try:
            yield place
        finally:
            with self._lock:
                self._used -= place.size

    def take(self, size: int) -> None:
        """Take more of it; raises TooMany."""
        with self._lock:
            if self._used + size > self._most:
                raise TooMany(self._name, self._unit, self._most, self._most - self._used, _SOON)
            self._used += size


class Place:
    """What one request has taken of a room."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.size = 0

    def grow(self, size: int) -> None:
        """Take so much more; raises TooMany."""
        self._room.take(size)
        self.size += size


_SOON = 1
"""seconds: what is held now is held by requests that are being answered"""
