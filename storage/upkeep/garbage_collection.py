"""Garbage collection: removes leftovers of processes that died and of interrupted operations from the store.

| what was left                                                  | removed by                       | after        |
| -------------------------------------------------------------- | -------------------------------- | ------------ |
| unfinished files of a process that has died                    | ``Store.remove_abandoned``       | its death    |
| files of uploads and relabelings that were not sealed          | ``Datasets.remove_abandoned``    | a day        |
| deletions of datasets: they are completed, or undone           | ``Datasets.recover_deletions``   | 10 seconds * |
| deletions of versions: completed, or undone; marks of aliases  | ``Models.remove_abandoned``      | a minute *   |
| files of attempts that the outcome of their job does not name  | this module                      | a day        |
| the rest of jobs whose deletion was cut short                  | this module                      | a day        |
| idempotency keys of jobs that were deleted                     | this module                      | a day        |

*: for which a process has seen them. Files of attempts go a day after the end of their job, the rest of deleted jobs
after a day at most.

What a policy no longer keeps is another matter: see ``storage.upkeep.retention``.
"""

import re
import time
from collections.abc import Set
from datetime import UTC, datetime, timedelta

from storage.errors import NotFound, StoreDamaged
from storage.names import is_id
from storage.records import Outcome
from storage.repositories.idempotency import IdempotencyKeys
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.repositories.sightings import Sightings
from storage.store import Store
from storage.store.bulk import delete_except


class GarbageCollector:
    """Garbage collection of models and jobs. May be cut short anywhere, and be run by any number of processes at once.

    ``leftover_seconds``: how long after the end of a job files of its attempts stay which its outcome does not name.
    ``abandoned_seconds``: how long after the deletion of a job its idempotency key stays its own, at most.
    """

    def __init__(
        self,
        store: Store,
        jobs: Jobs,
        models: Models,
        leftover_seconds: float = 86_400.0,
        abandoned_seconds: float = 86_400.0,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._models = models
        self._idempotency_keys, self._sightings = IdempotencyKeys(store), Sightings()
        self._abandoned_seconds = abandoned_seconds
        self._leftover_time = timedelta(seconds=leftover_seconds)
        self._clean: set[str] = set()
        """ids of jobs that had no leftovers any more since ``_clean_since``"""
        self._clean_since = time.monotonic()

    def remove_abandoned(self) -> None:
        """Remove leftovers of versions, attempts and deleted jobs.

        Raises StoreUnavailable; StoreDamaged for a version that cannot be read, whose files may lie among those of
        deleted jobs: these then stay.
        """
        self._models.remove_abandoned(self._jobs.starting_from)
        orphans = self._remove_leftovers(self._remove_keys())
        # the versions are listed only now: a job that is gone had published before whatever it has published. What a
        # deleted version names is removed by its deletion alone, which may still be undone
        named = (
            {file.key for version in self._models.every_version() for file in version.files.values()}
            if orphans
            else set()
        )
        for id in orphans:
            # a job in the making is open before it has a folder, and gets its request last
            if not self._store.exists(f"open/{id}") and not self._store.exists(f"jobs/{id}/request.json"):
                delete_except(self._store, f"jobs/{id}", named)

    def _remove_keys(self) -> set[str]:
        """Free the keys of jobs that were deleted long ago; returns the ids of the others that were deleted."""
        deleted = set()
        for digest, id in self._idempotency_keys.every_retired():
            if self._sightings.old(id, self._abandoned_seconds):
                self._idempotency_keys.forget(digest, id)
            else:
                deleted.add(id)
        return deleted

    def _remove_leftovers(self, deleted: Set[str]) -> list[str]:
        """Remove files of attempts that came to nothing; returns the ids of folders that belong to no job.

        One of those that were deleted may be there because its deletion was cut short, or because a late request has
        made it again.
        """
        orphans, now, ids = [], datetime.now(UTC), self._store.children("jobs")
        # by a clock that nobody sets: one that is set back would let what is left stay for as long
        if time.monotonic() - self._clean_since > self._leftover_time.total_seconds():
            # a deletion of one of them may have been cut short since, or an attempt may have come late
            self._clean, self._clean_since = set(), time.monotonic()
        self._clean.intersection_update(ids)
        for id in ids:
            if (id in self._clean and id not in deleted) or not is_id("job", id):
                continue
            try:
                job = self._jobs.get(id)
                if id in deleted and self._jobs.withdraw_if_deleted(job.request):
                    raise NotFound("job", id)
            except NotFound:
                orphans.append(id)
                continue
            except StoreDamaged:
                continue
            if job.state.final and job.outcome and abs(now - job.outcome.finished_at) > self._leftover_time:
                # an end that lies in the future is of a clock that was ahead; what the outcome names stays in any case
                self._remove_unnamed(id, job.outcome)
                self._clean.add(id)
        return orphans

    def _remove_unnamed(self, id: str, outcome: Outcome) -> None:
        """Remove the files of the attempts at a job that its outcome does not name."""
        folder, named = f"jobs/{id}/attempts", {file.key for file in outcome.files.values()}
        for name in self._store.children(folder):
            if re.fullmatch(r"\d+", name) or is_id("trace", name):
                delete_except(self._store, f"{folder}/{name}", named)
