"""Jobs: their records in the store, from which their state follows (see ``docs/architecture.md``).

jobs/{id}/request.json               the request
jobs/{id}/attempts/{n}.json          attempt n was claimed by a worker: n is the fencing token
jobs/{id}/attempts/{n}.returned.json attempt n was handed back unfinished, or superseded; it did not die
jobs/{id}/attempts/{n}.killed.json   how the process of attempt n died
jobs/{id}/cancel.json                a cancel was requested
jobs/{id}/outcome.json               how the job ended; the first that is created counts
jobs/{id}/published.json             the version that its success was published as
open/{id}                            the job is not known to have ended; created first, removed last
"""

import json
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workers.contract import (
    Attempt,
    Cancellation,
    Dataset,
    Death,
    EncoderRef,
    File,
    Job,
    JobRequest,
    JobSize,
    JobState,
    Outcome,
    Progress,
    Publication,
    Publish,
    Record,
    Version,
)
from workers.errors import JobDeleted, JobNotCancellable, JobNotFinished, NotFound, StoreDamaged
from workers.names import check_name, is_id, new_id, numbers_in
from workers.problems import problem_of
from workers.queue.redis_state import TraceRow
from workers.repositories.deletions import Deletions
from workers.repositories.idempotency import IdempotencyKeys, digest_of
from workers.repositories.models import Models
from workers.repositories.unfinished_requests import RequestSummary, UnfinishedRequests
from workers.repositories.webhooks import Webhooks
from workers.store import KeyMissing, Store, records
from workers.store.delete_except import delete_except
from workers.store.os_errors import translate_os_errors
from workers.store.parallel import in_parallel

_RETURN = ".returned.json"


class _Return(Record):
    """Return of an unfinished attempt that did not die: its worker was told to stop, or it was taken for dead and superseded."""

    returned_at: datetime


class Jobs:
    """The jobs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._idempotency_keys = IdempotencyKeys(store)
        self._unfinished_requests = UnfinishedRequests(store)
        self._webhooks = Webhooks(store)

    def submit(
        self,
        *,
        dataset: str,
        model: str,
        algorithm: str,
        options: Mapping[str, Any],
        seed: int,
        text: Mapping[str, int] | None = None,
        start: Publication | None = None,
        publish: Publish = "if_better",
        annotations: int | None = None,
        encoder: EncoderRef | None = None,
        size: JobSize = "medium",
        idempotency_key: str | None = None,
        fingerprint: str = "",
        caller: str | None = None,
        traceparent: str | None = None,
    ) -> tuple[Job, bool]:
        """Store a request; returns the job, and whether it is new: with an idempotency key that was used before it is the job of that key.

        ``options`` are not validated. Raises InvalidName, NotFound for the dataset, IdempotencyConflict for another ``fingerprint``, JobDeleted.
        """
        check_name("model", model)
        # before the key is claimed: a request that is refused has none
        if (missing := self._missing(dataset, start)) is not None:
            known = None if idempotency_key is None else self.find_by_idempotency_key(idempotency_key, caller, fingerprint)
            if known is None:
                raise missing
            return known, False
        new = id = new_id("job")
        if idempotency_key is not None:
            id = self._idempotency_keys.claim(idempotency_key, caller, new, fingerprint)
            if id != new and self._store.exists(f"jobs/{id}/request.json"):
                return self.get(id), False
        request = JobRequest(
            id=id,
            dataset=dataset,
            model=model,
            algorithm=algorithm,
            options=dict(options),
            seed=seed,
            text=None if text is None else dict(text),
            start=start,
            publish=publish,
            annotations=annotations,
            encoder=encoder,
            size=size,
            key=None if idempotency_key is None else digest_of(idempotency_key, caller),
            caller=caller,
            traceparent=traceparent,
            created_at=datetime.now(UTC),
        )
        return self._store_request(request)

    def find_by_idempotency_key(self, key: str, caller: str | None, fingerprint: str) -> Job | None:
        """The job of a caller's idempotency key, also when its dataset was deleted; None if the key has none. Raises IdempotencyConflict."""
        # in a store of an earlier version the keys of all callers are together
        for digest in dict.fromkeys((digest_of(key, caller), digest_of(key, None))):
            claim = self._idempotency_keys.find(digest)
            with suppress(NotFound):
                if claim is not None and (job := self.get(claim.job)).request.caller == caller:
                    claim.check(key, fingerprint)
                    return job
        return None

    def _store_request(self, request: JobRequest) -> tuple[Job, bool]:
        """The job, and whether it is new; raises NotFound if its dataset or the version that it starts from is deleted meanwhile, and JobDeleted.

        A deletion leaves its mark, then looks for jobs; this stores the job, then looks for marks. So at least one of them sees the other.
        """
        self._store.create(f"open/{request.id}", b"")
        created = records.create(self._store, f"jobs/{request.id}/request.json", request)
        if self.withdraw_if_deleted(request):
            raise JobDeleted(request.id)
        if not created:
            return self.get(request.id), False
        if (missing := self._missing(request.dataset, request.start)) is not None:
            if self.record_outcome(request.id, Outcome(state=JobState.FAILED, attempt=0, finished_at=datetime.now(UTC), error=problem_of(missing))):
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
        """The job as its records show it now; raises NotFound, StoreDamaged. Until it has ended its progress is empty: that is in Redis."""
        if not is_id("job", id):
            raise NotFound("job", id)
        outcome = self.outcome(id)
        published = records.find(self._store, f"jobs/{id}/published.json", Publication) if outcome else None
        attempt = self._attempt(id, number := self.last_attempt(id))
        cancelled = outcome is None and self.cancel_requested(id)
        job = Job(
            # read last, as it is deleted first: so what is missing of a job that is being deleted makes none that is not over
            request=self._request(id),
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

    def ids(self, after: str | None = None) -> Sequence[str]:
        """Ids of all jobs, or of those after an id, oldest first."""
        return self._ids_in("jobs", after)

    def every(self, before: str | None = None) -> Iterator[Job]:
        """The jobs that are older than the job ``before``, newest first, but those that are damaged."""
        for id in reversed(self.ids()):
            if before is None or id < before:
                with suppress(NotFound, StoreDamaged):
                    yield self.get(id)

    def file(self, job: Job, kind: str) -> Path | None:
        """A local copy of a file of the outcome, None if it has none of that kind; raises NotFound if the job was deleted meanwhile."""
        file = job.outcome.files.get(kind) if job.outcome else None
        try:
            return None if file is None else self._store.local(file)
        except KeyMissing:
            raise NotFound("job", job.request.id) from None

    def delete(self, id: str) -> None:
        """Delete a job that has ended, with all its files but those of a published model. Raises NotFound, JobNotFinished."""
        job = self.get(id)
        if not job.state.final:
            raise JobNotFinished(id, job.state.value)
        # in this order: an idempotency key must never have a job of which only a part is left
        self._idempotency_keys.retire(job.request.key, id)
        self._withdraw(id)
        delete_except(self._store, f"jobs/{id}", {file.key for file in Models(self._store).files_of(job).values()})

    def withdraw_if_deleted(self, request: JobRequest) -> bool:
        """Whether the job was deleted. It is gone then, also if a request with the same key came so late that it made the job again."""
        deleted = self._idempotency_keys.retired(request.key, request.id)
        if deleted:  # what else is left may be files of a version, which garbage collection knows
            self._withdraw(request.id)
        return deleted

    def _withdraw(self, id: str) -> None:
        self.close(id)
        self._store.delete(f"jobs/{id}/request.json")

    def gone(self, id: str) -> bool:
        """Whether no such job exists or is being made: a job in the making is open before it has a folder, and gets its request last."""
        return not self._store.exists(f"open/{id}") and not self._store.exists(f"jobs/{id}/request.json")

    def cancel(self, id: str) -> Job:
        """Request that a job stops; a job that no worker has claimed ends at once. Idempotent. Raises NotFound, JobNotCancellable."""
        job = self.get(id)
        if job.state in (JobState.CANCELLING, JobState.CANCELLED):
            return job
        if job.outcome is not None:
            raise JobNotCancellable(id, job.state.value)
        records.create(self._store, f"jobs/{id}/cancel.json", Cancellation(requested_at=datetime.now(UTC)))
        # a worker that claims an attempt after this line sees the request; one that did so before is listed now
        if self.last_attempt(id) == 0:
            self.record_outcome(id, Outcome(state=JobState.CANCELLED, attempt=0, finished_at=datetime.now(UTC)))
            self.close(id)
        return self.get(id)

    def cancel_requested(self, id: str) -> bool:
        """Whether a cancel was requested."""
        return self._store.exists(f"jobs/{id}/cancel.json")

    def claim_attempt(self, id: str, worker: str, number: int | None = None, at: datetime | None = None) -> Attempt | None:
        """Claim the next attempt, which must be ``number`` if that is given; None if the job has ended or another worker was first.

        Idempotent with the same time ``at``: a worker that did not learn whether its claim was stored may claim again.
        """
        last = self.last_attempt(id)
        attempt = Attempt(number=number or last + 1, worker=worker, started_at=at or datetime.now(UTC))
        if self.has_outcome(id) or attempt.number > last + 1:
            return None
        created = attempt.number > last and records.create(self._store, f"jobs/{id}/attempts/{attempt.number}.json", attempt)
        return attempt if created or self._attempt(id, attempt.number) == attempt else None

    def last_attempt(self, id: str) -> int:
        """Number of the newest attempt; 0 if there is none."""
        return max(numbers_in(self._store.children(f"jobs/{id}/attempts")), default=0)

    @translate_os_errors("write", "a trace")
    def store_trace(self, key: str, points: Sequence[TraceRow]) -> File:
        """Store a trace under a key; raises StoreUnavailable."""
        folder = self._store.staging()
        try:
            (folder / "trace.json").write_text(json.dumps(list(points)))
            return self._store.upload(key, folder / "trace.json")
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def record_hand_back(self, id: str, number: int) -> None:
        """Record that an attempt ended unfinished without dying: it was told to stop, or superseded. Idempotent."""
        records.create(self._store, f"jobs/{id}/attempts/{number}{_RETURN}", _Return(returned_at=datetime.now(UTC)))

    def record_death(self, id: str, number: int, death: Death) -> None:
        """Record how the process of an attempt died."""
        records.create(self._store, f"jobs/{id}/attempts/{number}.killed.json", death)

    def death(self, id: str, number: int) -> Death | None:
        """How the process of an attempt died, None if its worker did not see it."""
        return records.find_readable(self._store, f"jobs/{id}/attempts/{number}.killed.json", Death)

    def deaths(self, id: str, last: int | None = None) -> int:
        """Number of attempts, up to number ``last``, that were claimed and not handed back: how often a worker died of it if none runs these."""
        names = self._store.children(f"jobs/{id}/attempts")
        return sum(last is None or number <= last for number in numbers_in(names) - numbers_in(names, _RETURN))

    def record_outcome(self, id: str, outcome: Outcome) -> bool:
        """Record how the job ended; if there is another outcome, return false and change nothing. Idempotent. Raises NotFound if it was deleted."""
        key, data = f"jobs/{id}/outcome.json", records.encode(outcome)
        self._webhooks.note_end(id)
        with suppress(KeyMissing):
            return self._store.create(key, data) or self._store.read(key) == data
        raise NotFound("job", id)

    def has_outcome(self, id: str) -> bool:
        """Whether the job has an outcome; that of a success may still have to be published."""
        return self._store.exists(f"jobs/{id}/outcome.json")

    def outcome(self, id: str) -> Outcome | None:
        """How the job ended, None if it has not; raises StoreDamaged."""
        return records.find(self._store, f"jobs/{id}/outcome.json", Outcome)

    def publish(self, id: str) -> Version | None:
        """Publish a success as a version of its model; None for other jobs. Idempotent, in any number of processes: a job has one version."""
        outcome = self.outcome(id)
        if outcome is None or outcome.state is not JobState.SUCCEEDED:
            return None
        version = Models(self._store).publish(self._request(id), outcome)
        records.create(self._store, f"jobs/{id}/published.json", Publication(name=version.name, version=version.number))
        self.close(id)
        return version

    def close(self, id: str) -> None:
        """Take a job that has ended off the list of the unfinished."""
        self._store.delete(f"open/{id}")

    def unfinished_ids(self) -> Sequence[str]:
        """Ids of the jobs that are not known to have ended, oldest first."""
        return self._ids_in("open")

    def open_jobs(self, but: Set[str] = frozenset()) -> Iterator[tuple[str, Job | None]]:
        """The jobs not known to have ended, oldest first, except the ids in ``but`` and damaged ones; None for a job without a request."""
        ids = [id for id in self.unfinished_ids() if id not in but]
        return ((id, job) for id, (job, damage) in zip(ids, in_parallel(self._find, ids), strict=True) if damage is None)

    def attempts_of(self, worker: str) -> Iterator[tuple[str, int]]:
        """Ids of the jobs, and numbers of the attempts, that a worker whose name begins with ``worker`` has claimed and not handed back."""
        ids = self.unfinished_ids()
        for id, number in zip(ids, in_parallel(self.last_attempt, ids), strict=True):
            attempt = self._attempt(id, number)
            if attempt and attempt.worker.startswith(worker) and not self._store.exists(f"jobs/{id}/attempts/{number}{_RETURN}"):
                yield id, number

    def unfinished(self) -> Iterator[Job]:
        """The jobs that have not ended, or are not published yet, oldest first."""
        return (job for _, job in self.open_jobs() if job is not None and not job.state.final)

    def states(self, waiting: Set[str]) -> Counter[JobState]:
        """Number of unfinished jobs by state. Those with the ids in ``waiting``, which wait in the queue, are not read."""
        ids = self.unfinished_ids()
        found = (job.state for job, _ in in_parallel(self._find, [id for id in ids if id not in waiting]) if job is not None)
        return Counter(found) + Counter({JobState.QUEUED: sum(1 for id in ids if id in waiting)})

    def unfinished_requests(self) -> Mapping[str, RequestSummary]:
        """The requests of the jobs that are not known to have ended, by id."""
        return self.requests_of(self.unfinished_ids())

    def requests_of(self, unfinished: Collection[str]) -> Mapping[str, RequestSummary]:
        """The requests of these jobs, which are all that are not known to have ended."""
        return self._unfinished_requests.of(unfinished)

    def unfinished_job_of(self, dataset: Dataset) -> Job | None:
        """An unfinished job of this dataset, None if it has none. Raises StoreDamaged if there is one that cannot be read."""
        return self._unfinished_among(id for id, request in self.unfinished_requests().items() if request.dataset == dataset.id)

    def starting_from(self, name: str, numbers: Collection[int]) -> Job | None:
        """An unfinished job that starts from one of these versions, None if no job does. Raises StoreDamaged as ``unfinished_job_of``."""
        starts = {Publication(name=name, version=number) for number in numbers}
        return self._unfinished_among(id for id, request in self.unfinished_requests().items() if request.start in starts)

    def _unfinished_among(self, ids: Iterable[str]) -> Job | None:
        for id in ids:
            job, damage = self._find(id)
            if damage is not None and not self.has_outcome(id):
                raise damage
            if job is not None and not job.state.final:
                return job
        return None

    def _find(self, id: str) -> tuple[Job | None, StoreDamaged | None]:
        """The job, None if there is none that can be read; and what is damaged of it."""
        try:
            return self.get(id), None
        except NotFound:
            return None, None
        except StoreDamaged as error:
            return None, error

    def _ids_in(self, prefix: str, after: str | None = None) -> Sequence[str]:
        return [id for id in self._store.children(prefix, after) if is_id("job", id)]

    def _attempt(self, id: str, number: int) -> Attempt | None:
        """An attempt, None if there is none that can be read. That there is one its name says, so a damaged one does not stop its job."""
        return records.find_readable(self._store, f"jobs/{id}/attempts/{number}.json", Attempt) if number else None

    def _request(self, id: str) -> JobRequest:
        with suppress(KeyMissing):
            return records.read(self._store, f"jobs/{id}/request.json", JobRequest)
        raise NotFound("job", id)


def _state(outcome: Outcome | None, published: Publication | None, attempts: int, cancelled: bool) -> JobState:
    if outcome is not None:
        return JobState.RUNNING if outcome.state is JobState.SUCCEEDED and published is None else outcome.state
    return JobState.CANCELLING if cancelled else JobState.RUNNING if attempts else JobState.QUEUED
