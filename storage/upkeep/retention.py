"""Retention: removes the versions, jobs and datasets that a policy no longer keeps.

It deletes by the same calls as a client, so what an alias, a version or an unfinished job names is refused to it as to
any caller.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import structlog
from pydantic import BaseModel, ConfigDict, Field

from storage.errors import Conflict, NotFound, StoreDamaged
from storage.records import File
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models

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


class Retention:
    """Application of a policy to a store. May be cut short anywhere, and be run by any number of processes at once."""

    def __init__(self, datasets: Datasets, jobs: Jobs, models: Models, policy: Policy) -> None:
        self._datasets = datasets
        self._jobs = jobs
        self._models = models
        self._policy = policy

    def remove_expired(self) -> Removed:
        """Remove all that the policy does not keep. Versions go first, since they keep datasets.

        Raises StoreUnavailable; StoreDamaged for a version that cannot be read, which may keep any dataset: these then
        stay.
        """
        now = datetime.now(UTC)
        removed = Removed(list(self._old_versions(now)), list(self._old_jobs(now)), list(self._old_datasets(now)))
        if any(removed):
            _log.info("removed what the policy does not keep", **removed._asdict())
        return removed

    def _old_versions(self, now: datetime) -> Iterator[str]:
        if self._policy.versions is None:
            return
        for name in self._models.every():
            with suppress(NotFound):
                versions = reversed(self._models.versions(name))
                sized = [(version, version.created_at, _size(version.files.values())) for version in versions]
                served = self._models.resolve(name).number
                for version in surplus(sized, self._policy.versions, now):
                    # what an alias or an unfinished job names is refused, also if the job cannot be read
                    with suppress(NotFound, Conflict, StoreDamaged):
                        if version.number != served:
                            self._models.delete_version(name, version.number, self._jobs.starting_from)
                            yield f"{name}/{version.number}"

    def _old_jobs(self, now: datetime) -> Iterator[str]:
        if self._policy.jobs is None:
            return
        over = [(job.request.id, job.outcome) for job in self._jobs.every() if job.state.final]
        sized = [(id, outcome.finished_at, _size(outcome.files.values())) for id, outcome in over if outcome]
        for id in surplus(sized, self._policy.jobs, now):
            with suppress(NotFound):
                self._jobs.delete(id)
                yield id

    def _old_datasets(self, now: datetime) -> Iterator[str]:
        if self._policy.datasets is None:
            return
        # in this order: a job that ends in between is found as a version
        named = {request.dataset for request in self._jobs.unfinished_requests().values()}
        named |= {version.dataset for version in self._models.every_version()}
        sized = [
            (each.id, each.created_at, _size(each.files.values()))
            for each in self._datasets.every()
            if each.id not in named
        ]
        for id in surplus(sized, self._policy.datasets, now):
            with suppress(NotFound, Conflict, StoreDamaged):
                self._datasets.delete(id)
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
