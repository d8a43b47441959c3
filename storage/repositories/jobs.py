"""Jobs: their records in the store, from which their state follows (see ``docs/architecture.md``).

jobs/{id}/request.json               the request
jobs/{id}/attempts/*                 the attempts (``storage.repositories.job_attempts``)
jobs/{id}/cancel.json                a cancel was requested
jobs/{id}/outcome.json               how the job ended; the first that is created counts
jobs/{id}/published.json             the version that its success was published as
open/{id}                            the job is not known to have ended; created first, removed last
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import AwareDatetime

from storage.errors import Conflict, JobDeleted, NotFound, RedisUnavailable, StoreDamaged, translate_os_errors
from storage.names import check_name, is_id, new_id
from storage.problems import problem_of
from storage.queue.redis_state import RedisState, TraceRow
from storage.records import (
    Dataset,
    File,
    Job,
    JobDraft,
    JobRequest,
    JobState,
    Outcome,
    Progress,
    Publication,
    Record,
    Version,
)
from storage.repositories.deletions import Deletions
from storage.repositories.idempotency import IdempotencyKey, IdempotencyKeys, RequestSummary, UnfinishedRequests
from storage.repositories.job_attempts import JobAttempts
from storage.repositories.models import Models
from storage.repositories.webhooks import Webhooks
from storage.store import KeyMissing, Store, json_records, staging_folder
from storage.store.json_records import delete_except, in_parallel


class Cancellation(Record):
    """Request to cancel a job: ``jobs/{id}/cancel.json``."""

    requested_at: AwareDatetime


class Jobs(JobAttempts):
    """The jobs of a store."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._idempotency_keys = IdempotencyKeys(store)
        self._unfinished_requests = UnfinishedRequests(store)
        self._webhooks = Webhooks(store)

    def create(self, draft: JobDraft, key: IdempotencyKey | None = None) -> tuple[Job, bool]:
        """Store a request; returns the job, and whether it is new: an idempotency key that was used before has its job
        already.

        The options are not validated. Raises InvalidName, NotFound for the dataset, IdempotencyConflict, JobDeleted.
        """
        check_name("model", draft.model)
        # before the key is taken: a request that is refused has none
        if (missing := self._missing(draft.dataset, draft.start)) is not None:
            known = None if key is None else self.find_by_idempotency_key(key)
            if known is None:
                raise missing
            return known, False
        new = id = new_id("job")
        if key is not None:
            id = self._idempotency_keys.take(key, new)
            if id != new and self._store.exists(f"jobs/{id}/request.json"):
                return self.get(id), False
        digest = None if key is None else key.digest
        return self._store_request(JobRequest(**dict(draft), id=id, key=digest, created_at=datetime.now(UTC)))

    def find_by_idempotency_key(self, key: IdempotencyKey) -> Job | None:
        """The job of an idempotency key, also when its dataset was deleted; None if the key has none.

        Raises IdempotencyConflict.
        """
        owner = self._idempotency_keys.find(key.digest)
        if owner is None:
            return None
        try:
            job = self.get(owner.job)
        except NotFound:
            return None
        owner.check(key)
        return job

    def _store_request(self, request: JobRequest) -> tuple[Job, bool]:
        """The job, and whether it is new; raises NotFound if its dataset or the version that it starts from is deleted
        meanwhile, and JobDeleted.

        A deletion leaves its mark, then looks for jobs; this stores the job, then looks for marks. So at least one of
        them sees the other.
        """
        self._store.create(f"open/{request.id}", b"")
        created = json_records.create(self._store, f"jobs/{request.id}/request.json", request)
        if self.withdraw_if_deleted(request):
            raise JobDeleted(request.id)
        if not created:
            return self.get(request.id), False
        if (missing := self._missing(request.dataset, request.start)) is not None:
            if self.record_outcome(
                request.id,
                Outcome(state=JobState.FAILED, attempt=0, finished_at=datetime.now(UTC), error=problem_of(missing)),
            ):
                self.close(request.id)
                raise missing
            return self.get(request.id), True  # this look came so late that the job has ended: it was accepted
        return Job(request=request, state=JobState.QUEUED), True

    def _missing(self, dataset: str, start: Publication | None) -> NotFound | None:
        """The dataset or version to start from that does not exist, or is about to be deleted."""
        if Deletions(self._store).pending(dataset) or not self._store.exists(f"datasets/{dataset}/manifest.json"):
            return NotFound("dataset", dataset)
        if start is not None and Models(self._store).deleted(start.name, start.version):
            return NotFound("model version", f"{start.name}/{start.version}")
        return None

    def get(self, id: str) -> Job:
        """The job as its records show it now; raises NotFound, StoreDamaged.

        Until it has ended its progress is empty: that is in Redis.
        """
        if not is_id("job", id):
            raise NotFound("job", id)
        outcome = self.outcome(id)
        published = json_records.find(self._store, f"jobs/{id}/published.json", Publication) if outcome else None
        attempt = self._attempt(id, number := self.last_attempt(id))
        cancelled = outcome is None and self.cancel_requested(id)
        job = Job(
            # read last, as it is deleted first: so what is missing of a job that is being deleted makes none that is
            # not over
            request=self.request(id),
            state=_state(outcome, published, number, cancelled),
            attempt=number,
            started_at=attempt.started_at if attempt else None,
            outcome=outcome,
            version=published.version if published else None,
            progress=(outcome.progress if outcome and outcome.progress else Progress()).model_copy(),
        )
        if job.state is JobState.SUCCEEDED:
            job.progress.fraction = 1.0
        return job

    def request(self, id: str) -> JobRequest:
        """The request of a job, which never changes; raises NotFound, StoreDamaged."""
        with suppress(KeyMissing):
            return json_records.read(self._store, f"jobs/{id}/request.json", JobRequest)
        raise NotFound("job", id)

    def ids(self, after: str | None = None) -> Sequence[str]:
        """Ids of all jobs, or of those after an id, oldest first."""
        return self._ids_in("jobs", after)

    def every(self, before: str | None = None) -> Iterator[Job]:
        """The jobs that are older than the job ``before``, newest first, without damaged ones."""
        for id in reversed(self.ids()):
            if before is None or id < before:
                with suppress(NotFound, StoreDamaged):
                    yield self.get(id)

    def file(self, job: Job, kind: str) -> Path | None:
        """A local copy of a file of the outcome, None if it has none of this kind; raises NotFound if the job was
        deleted meanwhile.
        """
        file = job.outcome.files.get(kind) if job.outcome else None
        try:
            return None if file is None else self._store.local(file)
        except KeyMissing:
            raise NotFound("job", job.request.id) from None

    def delete(self, id: str) -> None:
        """Delete a job that has ended, with all its files except the files of a published model.

        Raises NotFound, Conflict.
        """
        job = self.get(id)
        if not job.state.final:
            raise Conflict(f"job {id!r} is {job.state.value}; it can be deleted when it is over")
        # in this order: an idempotency key must never have a job of which only a part is left
        self._idempotency_keys.retire(job.request.key, id)
        self._withdraw(id)
        delete_except(self._store, f"jobs/{id}", {file.key for file in Models(self._store).files_of(job).values()})

    def withdraw_if_deleted(self, request: JobRequest) -> bool:
        """Withdraw the job if it was deleted; returns whether it was.

        A late request with the same idempotency key may have created it again after the deletion.
        """
        deleted = self._idempotency_keys.retired(request.key, request.id)
        if deleted:  # what else is left may be files of a version, which garbage collection knows
            self._withdraw(request.id)
        return deleted

    def _withdraw(self, id: str) -> None:
        self.close(id)
        self._store.delete(f"jobs/{id}/request.json")

    def cancel(self, id: str) -> Job:
        """Request that a job stops; a job that no worker has claimed ends at once.

        Idempotent. Raises NotFound, Conflict.
        """
        job = self.get(id)
        if job.state in (JobState.CANCELLING, JobState.CANCELLED):
            return job
        if job.outcome is not None:
            raise Conflict(f"job {id!r} is {job.state.value}, so there is nothing to cancel")
        json_records.create(self._store, f"jobs/{id}/cancel.json", Cancellation(requested_at=datetime.now(UTC)))
        # a worker that claims an attempt after this line sees the request; one that did so before is listed now
        if self.last_attempt(id) == 0:
            self.record_outcome(id, Outcome(state=JobState.CANCELLED, attempt=0, finished_at=datetime.now(UTC)))
            self.close(id)
        return self.get(id)

    def cancel_requested(self, id: str) -> bool:
        """Whether a cancel was requested."""
        return self._store.exists(f"jobs/{id}/cancel.json")

    @translate_os_errors("write", "a trace")
    def store_trace(self, key: str, points: Sequence[TraceRow]) -> File:
        """Store a trace under a key; raises StoreUnavailable."""
        with staging_folder(self._store) as folder:
            (folder / "trace.json").write_text(json.dumps(list(points)))
            return self._store.upload(key, folder / "trace.json")

    def record_outcome(self, id: str, outcome: Outcome) -> bool:
        """Record how the job ended; if there is another outcome, return false and change nothing.

        Idempotent. Raises NotFound if it was deleted.
        """
        key, data = f"jobs/{id}/outcome.json", json_records.encode(outcome)
        self._webhooks.note_end(id)
        with suppress(KeyMissing):
            return self._store.create(key, data) or self._store.read(key) == data
        raise NotFound("job", id)

    def end(self, request: JobRequest, outcome: Outcome, started_at: datetime | None, redis_state: RedisState) -> bool:
        """Record an outcome, publish it if it is a success, and tell Redis; whether it is the first. Idempotent.

        Raises NotFound as ``record_outcome``.
        """
        won = self.record_outcome(request.id, outcome)
        if self.publish(request.id) is None:
            self.close(request.id)
        with suppress(RedisUnavailable):
            if won:
                seconds = (outcome.finished_at - (started_at or outcome.finished_at)).total_seconds()
                redis_state.count_outcome(request.algorithm, outcome.state.value, seconds)
            redis_state.note_change(request.id)
        return won

    def outcome(self, id: str) -> Outcome | None:
        """How the job ended, None if it has not; raises StoreDamaged."""
        return json_records.find(self._store, f"jobs/{id}/outcome.json", Outcome)

    def publish(self, id: str) -> Version | None:
        """Publish a success as a version of its model.

        None for other jobs. Idempotent, in any number of processes: a job has one version.
        """
        outcome = self.outcome(id)
        if outcome is None or outcome.state is not JobState.SUCCEEDED:
            return None
        version = Models(self._store).publish(self.request(id), outcome)
        json_records.create(
            self._store, f"jobs/{id}/published.json", Publication(name=version.name, version=version.number)
        )
        self.close(id)
        return version

    def close(self, id: str) -> None:
        """Take a job that has ended off the list of the unfinished."""
        self._store.delete(f"open/{id}")

    def open_jobs(self, but: Set[str] = frozenset()) -> Iterator[tuple[str, Job | None]]:
        """The jobs not known to have ended, oldest first, except the ids in ``but`` and damaged ones.

        None for a job without a request.
        """
        ids = [id for id in self.unfinished_ids() if id not in but]
        return (
            (id, job) for id, (job, damage) in zip(ids, in_parallel(self._find, ids), strict=True) if damage is None
        )

    def unfinished(self) -> Iterator[Job]:
        """The jobs that have not ended, or are not published yet, oldest first."""
        return (job for _, job in self.open_jobs() if job is not None and not job.state.final)

    def states(self, waiting: Set[str]) -> Counter[JobState]:
        """Number of unfinished jobs by state.

        Those with the ids in ``waiting``, which wait in the queue, are not read.
        """
        ids = self.unfinished_ids()
        found = (
            job.state for job, _ in in_parallel(self._find, [id for id in ids if id not in waiting]) if job is not None
        )
        return Counter(found) + Counter({JobState.QUEUED: sum(1 for id in ids if id in waiting)})

    def unfinished_requests(self, ids: Collection[str] | None = None) -> Mapping[str, RequestSummary]:
        """The requests of the jobs that are not known to have ended; a caller may know their ``ids``."""
        return self._unfinished_requests.of(self.unfinished_ids() if ids is None else ids)

    def unfinished_job_of(self, dataset: Dataset) -> Job | None:
        """An unfinished job of this dataset, None if it has none.

        Raises StoreDamaged if there is one that cannot be read.
        """
        return self._unfinished_among(
            id for id, request in self.unfinished_requests().items() if request.dataset == dataset.id
        )

    def starting_from(self, name: str, numbers: Collection[int]) -> Job | None:
        """An unfinished job that starts from one of these versions, None if no job does.

        Raises StoreDamaged as ``unfinished_job_of``.
        """
        return self._unfinished_among(
            id
            for id, request in self.unfinished_requests().items()
            if request.start is not None and request.start.name == name and request.start.version in numbers
        )

    def _unfinished_among(self, ids: Iterable[str]) -> Job | None:
        for id in ids:
            job, damage = self._find(id)
            if damage is not None and not self.has_outcome(id):
                raise damage
            if job is not None and not job.state.final:
                return job
        return None

    def _find(self, id: str) -> tuple[Job | None, StoreDamaged | None]:
        """The job, None if there is none that can be read; and its damage."""
        try:
            return self.get(id), None
        except NotFound:
            return None, None
        except StoreDamaged as error:
            return None, error


def _state(outcome: Outcome | None, published: Publication | None, attempts: int, cancelled: bool) -> JobState:
    if outcome is not None:
        return JobState.RUNNING if outcome.state is JobState.SUCCEEDED and published is None else outcome.state
    if cancelled:
        return JobState.CANCELLING
    return JobState.RUNNING if attempts else JobState.QUEUED
