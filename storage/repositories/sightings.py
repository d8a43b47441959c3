"""Sightings tell how long this process has seen things in the store, by a clock that nobody sets. No clock of another
machine, and none that is wrong, counts. What a process seems to have abandoned is removed when another has seen it
there, unchanged, for long enough. Leases of Kubernetes are judged so too (``leaderelection`` of client-go).
"""

import time

from storage.names import age_seconds
from storage.recent import Recent

_MOST = 100_000
"""Things that are remembered, some hundred bytes each. One that is forgotten counts as new, so it stays for longer."""
_ENOUGH_SECONDS = 3600.0
"""For so long a thing must have been seen, or as long as was asked for if that is less, though its id says that it is
old."""


class Sightings:
    """The first sightings of this process, by names that are never used for another thing."""

    def __init__(self) -> None:
        self._first: Recent[str, float] = Recent(_MOST)

    def seconds(self, name: str) -> float:
        """Seconds since this process saw the thing for the first time, which may be now."""
        now = time.monotonic()
        self._first[name] = self._first.get(name, now)
        return now - self._first[name]

    def old(self, id: str, seconds: float) -> bool:
        """Whether the thing of an id is older than so many seconds.

        Of a day an hour must have been seen, since processes are replaced sooner.
        """
        seen = self.seconds(id)
        return seen >= seconds or (seen >= _ENOUGH_SECONDS and age_seconds(id) > seconds)
