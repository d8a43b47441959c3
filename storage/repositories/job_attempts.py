"""Attempts at jobs: their records in the store, from which follows who goes on and how often a worker died.

jobs/{id}/attempts/{n}.json          attempt n was claimed by a worker: n is the fencing token
jobs/{id}/attempts/{n}.returned.json attempt n was handed back unfinished, or superseded; it did not die
jobs/{id}/attempts/{n}.killed.json   how the process of attempt n died
"""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from pydantic import AwareDatetime

from storage.names import is_id, numbers_in
from storage.records import Record
from storage.store import Store, json_records
from storage.store.json_records import in_parallel


class Attempt(Record):
    """Claim of a worker to run a job: ``jobs/{id}/attempts/{number}.json``."""

    number: int
    """number of the attempt, from 1; the fencing token of the job: one worker gets it, and the newest attempt alone
    goes on"""
    worker: str
    started_at: AwareDatetime


class Death(Record):
    """How the process of an attempt died.

    ``jobs/{id}/attempts/{number}.killed.json``. Its worker writes it, unless it died as well.
    """

    signal: int | None
    """signal that killed it; None if it ended by itself, with an error"""
    peak_bytes: int
    """bytes of memory that it had at most"""


_RETURN = ".returned.json"


class _Return(Record):
    """Return of an unfinished attempt that did not die: its worker was told to stop, or it was taken for dead and
    superseded.
    """

    returned_at: datetime


class JobAttempts:
    """The attempts at the jobs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def claim_attempt(
        self, id: str, worker: str, number: int | None = None, at: datetime | None = None
    ) -> Attempt | None:
        """Claim the next attempt, which must be ``number`` if that is given; None if the job has ended or another
        worker was first.

        Idempotent with the same time ``at``: a worker that did not learn whether its claim was stored may claim again.
        """
        last = self.last_attempt(id)
        attempt = Attempt(number=number or last + 1, worker=worker, started_at=at or datetime.now(UTC))
        if self.has_outcome(id) or attempt.number > last + 1:
            return None
        created = attempt.number > last and json_records.create(
            self._store, f"jobs/{id}/attempts/{attempt.number}.json", attempt
        )
        return attempt if created or self._attempt(id, attempt.number) == attempt else None

    def last_attempt(self, id: str) -> int:
        """Number of the newest attempt; 0 if there is none."""
        return max(numbers_in(self._store.children(f"jobs/{id}/attempts")), default=0)

    def record_hand_back(self, id: str, number: int) -> None:
        """Record that an attempt ended unfinished without dying: it was told to stop, or superseded. Idempotent."""
        json_records.create(
            self._store, f"jobs/{id}/attempts/{number}{_RETURN}", _Return(returned_at=datetime.now(UTC))
        )

    def record_death(self, id: str, number: int, death: Death) -> None:
        """Record how the process of an attempt died."""
        json_records.create(self._store, f"jobs/{id}/attempts/{number}.killed.json", death)

    def death(self, id: str, number: int) -> Death | None:
        """How the process of an attempt died, None if its worker did not see it."""
        return json_records.find_readable(self._store, f"jobs/{id}/attempts/{number}.killed.json", Death)

    def deaths(self, id: str, last: int | None = None) -> int:
        """Number of attempts, up to number ``last``, that were claimed and not handed back.

        If no worker runs the job, each of them ended by the death of a worker.
        """
        names = self._store.children(f"jobs/{id}/attempts")
        return sum(last is None or number <= last for number in numbers_in(names) - numbers_in(names, _RETURN))

    def attempts_of(self, worker: str) -> Iterator[tuple[str, int]]:
        """The attempts of workers with names that begin with ``worker``, as ids of jobs and numbers: claimed and not
        handed back.
        """
        ids = self.unfinished_ids()
        for id, number in zip(ids, in_parallel(self.last_attempt, ids), strict=True):
            attempt = self._attempt(id, number)
            if (
                attempt
                and attempt.worker.startswith(worker)
                and not self._store.exists(f"jobs/{id}/attempts/{number}{_RETURN}")
            ):
                yield id, number

    def has_outcome(self, id: str) -> bool:
        """Whether the job has an outcome; a success may still have to be published."""
        return self._store.exists(f"jobs/{id}/outcome.json")

    def unfinished_ids(self) -> Sequence[str]:
        """Ids of the jobs that are not known to have ended, oldest first."""
        return self._ids_in("open")

    def _attempt(self, id: str, number: int) -> Attempt | None:
        """An attempt, None if there is none that can be read.

        That there is one its name says, so a damaged one does not stop its job.
        """
        return json_records.find_readable(self._store, f"jobs/{id}/attempts/{number}.json", Attempt) if number else None

    def _ids_in(self, prefix: str, after: str | None = None) -> Sequence[str]:
        return [id for id in self._store.children(prefix, after) if is_id("job", id)]
