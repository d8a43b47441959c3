"""How many unfinished jobs there are, and whose they are."""

import threading
from contextlib import suppress

from app.errors import TooMany, rate_limit
from workers.errors import NotFound
from workers.jobs import Jobs

NAME, UNIT = "jobs", "concurrent-requests"
AGAIN_SECONDS = 5


class Backlog:
    """Refuses more unfinished jobs than there may be in all, or by one key; without keys, everybody is the same caller.

    Whose a job is never changes, so it is looked up once for each job.
    """

    def __init__(self, jobs: Jobs, most: int, most_each: int) -> None:
        self._jobs = jobs
        self._most = most
        self._most_each = most_each
        self._callers: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def check(self, caller: str | None) -> None:
        """Raises TooMany if this caller may not start another job now."""
        left = self._left(caller)
        if left <= 0:
            raise TooMany(NAME, UNIT, self._most_each, left, AGAIN_SECONDS)

    def told(self, caller: str | None) -> dict[str, str]:
        """The headers that tell a caller how many jobs more there may be."""
        return rate_limit(NAME, UNIT, self._most_each, self._left(caller))

    def _left(self, caller: str | None) -> int:
        with self._lock:
            ids = set(self._jobs.unfinished_ids())
            self._callers = {id: known for id, known in self._callers.items() if id in ids}
            for id in ids - self._callers.keys():
                with suppress(NotFound):
                    self._callers[id] = self._jobs.get(id).request.caller
            own = sum(1 for each in self._callers.values() if each == caller)
        return min(self._most - len(ids), self._most_each - own)
