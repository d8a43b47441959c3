"""Pages of jobs by state and model, without reading every job for each page."""

from contextlib import suppress
from typing import NamedTuple

from workers.contract import Job, JobState
from workers.errors import NotFound, StoreDamaged
from workers.repositories.jobs import Jobs

_MOST_READ = 2_000
_MOST_KNOWN = 50_000


class _Known(NamedTuple):
    """Fields of a job that cannot change any more."""

    model: str
    state: JobState | None
    """final state; None if it was not final when it was read"""

    def may_be(self, state: JobState | None, model: str | None) -> bool:
        """Whether the job may have this state and this model."""
        return model in (None, self.model) and (self.state is None or state in (None, self.state))


class JobList:
    """Jobs of a store, page by page.

    The store has a list of the unfinished jobs. Of the others, model and final state are remembered once they were read. A page for which too many
    jobs would have to be read ends early: then it is short, and has a cursor.
    """

    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._known: dict[str, _Known] = {}

    def page(
        self, state: JobState | None = None, model: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> tuple[list[Job], str | None]:
        """At most ``limit`` jobs, newest first, older than the one called ``cursor``, and the cursor of the next page if there may be one."""
        found: list[Job] = []
        n_read, last = 0, cursor
        unfinished = state is not None and not state.final
        for id in reversed(self._jobs.unfinished_ids() if unfinished else self._jobs.ids()):
            if cursor is not None and id >= cursor:
                continue
            known = self._known.get(id)
            if known is None or known.may_be(state, model):
                if n_read == _MOST_READ:
                    return found, last
                n_read += 1
                with suppress(NotFound, StoreDamaged):
                    job = self._jobs.get(id)
                    self._remember(job)
                    if state in (None, job.state) and model in (None, job.request.model):
                        if len(found) == limit:
                            return found, found[-1].request.id
                        found.append(job)
            last = id
        return found, None

    def _remember(self, job: Job) -> None:
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[job.request.id] = _Known(job.request.model, job.state if job.state.final else None)
