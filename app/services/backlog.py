"""How many unfinished jobs there are, and whose they are."""

import threading
from contextlib import suppress
from typing import NamedTuple

from app.errors import TooManyRequests, rate_limit
from workers.errors import NotFound
from workers.repositories.jobs import Jobs

UNIT = "concurrent-requests"
AGAIN_SECONDS = 5


class Allowance(NamedTuple):
    """How many unfinished jobs a caller may still have, by the tighter of two limits: on all jobs, and on the caller's own."""

    name: str
    most: int
    left: int

    def check(self) -> None:
        """Raises TooManyRequests if there may not be another job now."""
        if self.left <= 0:
            raise TooManyRequests(self.name, UNIT, self.most, self.left, AGAIN_SECONDS)

    def without(self, taken: int) -> "Allowance":
        """What is left when so many more are taken."""
        return self._replace(left=self.left - taken)

    def headers(self) -> dict[str, str]:
        """What tells a caller how many jobs more there may be."""
        return rate_limit(self.name, UNIT, self.most, self.left)


class Backlog:
    """Tells how many more unfinished jobs there may be in all, or by one key; without keys, everybody is the same caller.

    Whose a job is never changes, so it is looked up once for each job.
    """

    def __init__(self, jobs: Jobs, most: int, most_each: int) -> None:
        self._jobs = jobs
        self._most = most
        self._most_each = most_each
        self._callers: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def allowance(self, caller: str | None) -> Allowance:
        """The allowance of this caller now. Raises StoreUnavailable."""
        with self._lock:
            ids = set(self._jobs.unfinished_ids())
            self._callers = {id: known for id, known in self._callers.items() if id in ids}
            for id in ids - self._callers.keys():
                with suppress(NotFound):
                    self._callers[id] = self._jobs.get(id).request.caller
            own = sum(1 for each in self._callers.values() if each == caller)
        allowances = Allowance("jobs", self._most_each, self._most_each - own), Allowance("jobs of everybody", self._most, self._most - len(ids))
        return min(allowances, key=lambda allowance: allowance.left)
