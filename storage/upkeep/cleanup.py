"""Clean-up of the store.

Garbage collection removes leftovers of processes that died and of interrupted operations:

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

Retention removes the versions, jobs and datasets that a policy no longer keeps. It deletes by the same calls as a
client, so what an alias, a version or an unfinished job names is refused to it as to any caller.
"""

import re
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeVar

import structlog
from pydantic import BaseModel, ConfigDict, Field

from storage.errors import Conflict, NotFound, StoreDamaged
from storage.names import is_id
from storage.records import File, Outcome
from storage.repositories.datasets import Datasets
from storage.repositories.idempotency import IdempotencyKeys
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.repositories.sightings import Sightings
from storage.store import Store
from storage.store.json_records import delete_except


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


T = TypeVar("T")
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Keep(BaseModel):
    """Bounds of one sort of thing; the newest are kept. A bound that is left out does not apply."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int | None = Field(default=None, ge=0)
    seconds: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    bytes: int | None = Field(default=None, ge=0)


class Policy(NamedTuple):
    """Bounds of a store; None keeps all."""

    versions: Keep | None = None
    """versions of each model, beside the one that is served and those that an alias or an unfinished job names"""
    jobs: Keep | None = None
    """jobs that have ended"""
    datasets: Keep | None = None
    """datasets that neither a version, nor one whose deletion may still be undone, nor an unfinished job names"""


class Removed(NamedTuple):
    """Ids of the things that one run has removed."""

    versions: list[str]
    jobs: list[str]
    datasets: list[str]


def remove_expired(datasets: Datasets, jobs: Jobs, models: Models, policy: Policy) -> Removed:
    """Remove all that the policy does not keep. Versions go first, since they keep datasets.

    May be cut short anywhere, and be run by any number of processes at once.

    Raises StoreUnavailable; StoreDamaged for a version that cannot be read, which may keep any dataset: these then
    stay.
    """
    now = datetime.now(UTC)
    removed = Removed(
        [] if policy.versions is None else list(_remove_old_versions(models, jobs, policy.versions, now)),
        [] if policy.jobs is None else list(_remove_old_jobs(jobs, policy.jobs, now)),
        [] if policy.datasets is None else list(_remove_old_datasets(datasets, jobs, models, policy.datasets, now)),
    )
    if any(removed):
        _log.info("removed what the policy does not keep", **removed._asdict())
    return removed


def _remove_old_versions(models: Models, jobs: Jobs, keep: Keep, now: datetime) -> Iterator[str]:
    for name in models.every():
        with suppress(NotFound):
            versions = reversed(models.versions(name))
            sized = [(version, version.created_at, _size(version.files.values())) for version in versions]
            served = models.resolve(name).number
            for version in surplus(sized, keep, now):
                # what an alias or an unfinished job names is refused, also if the job cannot be read
                with suppress(NotFound, Conflict, StoreDamaged):
                    if version.number != served:
                        models.delete_version(name, version.number, jobs.starting_from)
                        yield f"{name}/{version.number}"


def _remove_old_jobs(jobs: Jobs, keep: Keep, now: datetime) -> Iterator[str]:
    over = [(job.request.id, job.outcome) for job in jobs.every() if job.state.final]
    sized = [(id, outcome.finished_at, _size(outcome.files.values())) for id, outcome in over if outcome]
    for id in surplus(sized, keep, now):
        with suppress(NotFound):
            jobs.delete(id)
            yield id


def _remove_old_datasets(datasets: Datasets, jobs: Jobs, models: Models, keep: Keep, now: datetime) -> Iterator[str]:
    # in this order: a job that ends in between is found as a version
    named = {request.dataset for request in jobs.unfinished_requests().values()}
    named |= {version.dataset for version in models.every_version()}
    sized = [
        (each.id, each.created_at, _size(each.files.values())) for each in datasets.every() if each.id not in named
    ]
    for id in surplus(sized, keep, now):
        with suppress(NotFound, Conflict, StoreDamaged):
            datasets.delete(id)
            yield id


def surplus(entries: Iterable[tuple[T, datetime, int]], keep: Keep, now: datetime) -> Iterator[T]:
    """The entries, given newest first with their times and bytes, that exceed any of the bounds."""
    total = 0
    for place, (entry, since, size) in enumerate(entries):
        total += size
        age = (now - since).total_seconds()
        if any(
            bound is not None and value > bound
            for value, bound in ((place + 1, keep.count), (age, keep.seconds), (total, keep.bytes))
        ):
            yield entry


def _size(files: Iterable[File]) -> int:
    return sum(file.bytes for file in files)
