"""Limits on unfinished jobs: of all callers together, and of one API key."""

from typing import NamedTuple

from app.errors import TooManyRequests, rate_limit
from storage.repositories.jobs import Jobs

_UNIT = "concurrent-requests"
_RETRY_SECONDS = 5


class Allowance(NamedTuple):
    """Number of unfinished jobs that a caller may still have, by the tighter of two limits: on all jobs, and on the
    caller's own.
    """

    name: str
    most: int
    left: int

    def check(self) -> None:
        """Raises TooManyRequests if no job is left."""
        if self.left <= 0:
            raise TooManyRequests(self.name, _UNIT, self.most, self.left, _RETRY_SECONDS)

    def without(self, n_jobs: int) -> "Allowance":
        """The allowance after so many more jobs."""
        return self._replace(left=self.left - n_jobs)

    def headers(self) -> dict[str, str]:
        """The rate-limit headers."""
        return rate_limit(self.name, _UNIT, self.most, self.left)


class Backlog:
    """Counts unfinished jobs, in all and by API key. Without keys all callers count as one."""

    def __init__(self, jobs: Jobs, most: int, most_per_key: int) -> None:
        self._jobs = jobs
        self._most = most
        self._most_per_key = most_per_key

    def allowance(self, key_id: str | None) -> Allowance:
        """The allowance of a key now. Raises StoreUnavailable."""
        ids = self._jobs.unfinished_ids()
        own = sum(1 for request in self._jobs.unfinished_requests(ids).values() if request.caller == key_id)
        allowances = (
            Allowance("jobs", self._most_per_key, self._most_per_key - own),
            Allowance("jobs of everybody", self._most, self._most - len(ids)),
        )
        return min(allowances, key=lambda allowance: allowance.left)
