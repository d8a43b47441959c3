"""Pages of jobs by state and model, without reading every job for each page."""

import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple

from storage.errors import NotFound, StoreDamaged
from storage.names import earliest_id
from storage.recent import Recent
from storage.records import Job, JobState
from storage.repositories.jobs import Jobs
from storage.store.json_records import THREADS, in_parallel

_MOST_READ = 300
_MOST_KNOWN = 200_000
LIST_SECONDS = 600.0
"""Seconds for which a list of all jobs is added to, until all are listed again."""
_OVERLAP_SECONDS = 600.0
"""Seconds by which the clocks of gateways may differ, so that a new job is not missed in the list."""


class _Known(NamedTuple):
    """Fields of a job that cannot change any more."""

    model: str
    state: JobState | None
    """final state; None if it was not final when it was read"""

    def may_be(self, state: JobState | None, model: str | None) -> bool:
        """Whether the job may have this state and this model."""
        return model in (None, self.model) and (self.state is None or state in (None, self.state))


class _Listing(NamedTuple):
    """All jobs at one time."""

    ids: Sequence[str]
    """ids, oldest first"""
    known: frozenset[str]
    """the same ids"""
    since: str
    """id after which newer jobs are looked for"""
    at: float


class JobList:
    """Jobs of a store, page by page.

    The store has a list of the unfinished jobs. All others are listed now and then, and since then only those that are
    newer. Of these model and final state are remembered once they were read. A page for which too many jobs would have
    to be read ends early: then it is short, and has a cursor.
    """

    def __init__(self, jobs: Jobs, clock: Callable[[], float] = time.monotonic) -> None:
        self._jobs = jobs
        self._clock = clock
        self._known: Recent[str, _Known] = Recent(_MOST_KNOWN)
        self._listing = _Listing([], frozenset(), "", float("-inf"))

    def page(
        self, state: JobState | None = None, model: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[Job], str | None]:
        """At most ``limit`` jobs, newest first, older than the one called ``cursor``, and the cursor of the next page
        if there may be one.
        """
        found: list[Job] = []
        n_read, last, at_once = 0, cursor, limit + 1
        # ids of the jobs that may have this state and this model, newest first
        unfinished = self._jobs.unfinished_ids()
        listed = unfinished if state is not None and not state.final else self._ids(unfinished)
        out = frozenset(unfinished if state is not None and state.final else ())
        older = (id for id in reversed(listed) if (cursor is None or id < cursor) and id not in out)
        ids = (id for id in older if (known := self._known.get(id)) is None or known.may_be(state, model))
        while chunk := list(islice(ids, min(at_once, _MOST_READ - n_read))):
            for id, job in zip(chunk, in_parallel(self._read, chunk), strict=True):
                if job is not None and state in (None, job.state) and model in (None, job.request.model):
                    if len(found) == limit:
                        return found, found[-1].request.id
                    found.append(job)
                last = id
            n_read += len(chunk)
            at_once = max(2 * at_once, THREADS)  # few jobs match, so more are read at the same time
            if n_read >= _MOST_READ:
                return found, last if next(ids, None) is not None else None
        return found, None

    def refresh(self) -> None:
        """List all jobs.

        Until the next time what is newer is added to these, and what was deleted meanwhile is passed over.
        """
        since = earliest_id("job", _OVERLAP_SECONDS)
        ids = self._jobs.ids()
        self._listing = _Listing(ids, frozenset(ids), since, self._clock())

    def _ids(self, unfinished: Sequence[str]) -> Sequence[str]:
        """Ids of all jobs, oldest first."""
        if self._clock() - self._listing.at > LIST_SECONDS:
            self.refresh()
            return self._listing.ids
        listing = self._listing
        # two sorted runs, which take no time to be sorted
        new = sorted({*self._jobs.ids(listing.since), *unfinished} - listing.known)
        return sorted([*listing.ids, *new])

    def _read(self, id: str) -> Job | None:
        try:
            job = self._jobs.get(id)
        except (NotFound, StoreDamaged):
            return None
        self._known[id] = _Known(job.request.model, job.state if job.state.final else None)
        return job
