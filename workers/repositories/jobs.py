"""Jobs as their records tell them; see ``docs/architecture.md`` for which record says what.

jobs/{id}/request.json               what was asked
jobs/{id}/attempts/{n}.json          attempt n was claimed
jobs/{id}/attempts/{n}.returned.json attempt n was handed back unfinished, without a death
jobs/{id}/attempts/{n}.killed.json   how its process was seen to die
jobs/{id}/cancel.json                it should stop
jobs/{id}/outcome.json               how it ended; the first wins
jobs/{id}/published.json             under which version
open/{id}                            not known to be over: what ``unfinished`` lists; made first, removed last
"""

import json
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workers.contract import (
    Attempt,
    Cancellation,
    Dataset,
    Death,
    File,
    Job,
    JobRequest,
    JobState,
    Outcome,
    Progress,
    Publication,
    Record,
    Version,
)
from workers.errors import JobNotCancellable, JobNotFinished, NotFound
from workers.names import check_name, is_id, new_id
from workers.problems import problem_of
from workers.queue.redis_state import TraceRow
from workers.repositories.deletions import Deletions
from workers.repositories.idempotency import IdempotencyKeys, digest_of
from workers.repositories.models import MODEL_FILES, Models
from workers.store import KeyMissing, Store, records
from workers.store.delete_except import delete_except
from workers.store.os_errors import translate_os_errors


class _Return(Record):
    """An attempt ended unfinished and nobody died: its worker was told to stop, or taken for dead and overtaken."""

    returned_at: datetime


class Jobs:
    """The jobs of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._idempotency_keys = IdempotencyKeys(store)

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
        idempotency_key: str | None = None,
        fingerprint: str = "",
        caller: str | None = None,
    ) -> tuple[Job, bool]:
        """Store a request and return the job, and whether it is new: with a key used before, the job of then.

        ``options`` are taken as valid. Raises InvalidName, NotFound for the dataset, IdempotencyConflict when the key's ``fingerprint`` differs.
        """
        check_name("model", model)
        id = new_id("job")
        if idempotency_key is not None:
            id = self._idempotency_keys.claim(idempotency_key, id, fingerprint)
            if self._store.exists(f"jobs/{id}/request.json"):
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
            key=None if idempotency_key is None else digest_of(idempotency_key),
            caller=caller,
            created_at=datetime.now(UTC),
        )
        try:
            return self._store_request(request)
        except NotFound:
            if request.key is not None:
                self._idempotency_keys.free(request.key)
            raise

    def find_by_idempotency_key(self, key: str, fingerprint: str) -> Job | None:
        """The job that an idempotency key made, whatever became of its dataset; None if it made none. Raises IdempotencyConflict."""
        id = self._idempotency_keys.find(key, fingerprint)
        try:
            return None if id is None else self.get(id)
        except NotFound:
            return None

    def _store_request(self, request: JobRequest) -> tuple[Job, bool]:
        """The job, and whether it is new; raises NotFound for the dataset or the version to start from, also if its deletion comes between.

        A deletion leaves its mark and then looks for jobs; this stores the job and then looks for marks: so one of them sees the other.
        """
        id, missing = request.id, self._missing(request)
        if missing is not None:
            raise missing
        self._store.create(f"open/{id}", b"")
        if not records.create(self._store, f"jobs/{id}/request.json", request):
            return self.get(id), False
        missing = self._missing(request)
        if missing is not None:
            self.record_outcome(id, Outcome(state=JobState.FAILED, attempt=0, finished_at=datetime.now(UTC), error=problem_of(missing)))
            self.close(id)
            raise missing
        return Job(request=request, state=JobState.QUEUED), True

    def _missing(self, request: JobRequest) -> NotFound | None:
        """What a request needs that does not exist, or that somebody is about to delete."""
        dataset, start = request.dataset, request.start
        if Deletions(self._store).pending(dataset) or not self._store.exists(f"datasets/{dataset}/manifest.json"):
            return NotFound("dataset", dataset)
        if start is not None and Models(self._store).deleted(start.name, start.version):
            return NotFound("model version", f"{start.name}/{start.version}")
        return None

    def get(self, id: str) -> Job:
        """The job as its records tell it now; raises NotFound. Until it is over its progress is that of a job which has told none."""
        request = self._request(id)
        outcome = records.find(self._store, f"jobs/{id}/outcome.json", Outcome)
        published = records.find(self._store, f"jobs/{id}/published.json", Publication) if outcome else None
        number = self.last_attempt(id)
        attempt = records.find(self._store, f"jobs/{id}/attempts/{number}.json", Attempt) if number else None
        cancelled = outcome is None and self.cancel_requested(id)
        job = Job(
            request=request,
            state=_state(outcome, published, attempt, cancelled),
            attempt=number,
            started_at=attempt.started_at if attempt else None,
            outcome=outcome,
            version=published.version if published else None,
            progress=(outcome.progress if outcome and outcome.progress else Progress()).model_copy(),
        )
        if job.state is JobState.SUCCEEDED:
            job.progress.fraction = 1.0
        return job

    def ids(self) -> Sequence[str]:
        """Ids of all jobs, oldest first."""
        return self._store.children("jobs")

    def every(self, before: str | None = None) -> Iterator[Job]:
        """The jobs, newest first, that are older than the one called ``before``."""
        for id in reversed(self.ids()):
            if before is None or id < before:
                with suppress(NotFound):
                    yield self.get(id)

    def file(self, job: Job, kind: str) -> Path | None:
        """A local copy of what a job has left, None if it has left nothing of that kind; raises NotFound if the job was deleted meanwhile."""
        file = job.outcome.files.get(kind) if job.outcome else None
        try:
            return None if file is None else self._store.local(file)
        except KeyMissing:
            raise NotFound("job", job.request.id) from None

    def delete(self, id: str) -> None:
        """Forget a job that is over, with all its files but a published model's. Raises NotFound, JobNotFinished."""
        job = self.get(id)
        if not job.state.final:
            raise JobNotFinished(id, job.state.value)
        # in this order: a key must never stand for a job of which only a part is left
        if job.request.key is not None:
            self._idempotency_keys.free(job.request.key)
        self.close(id)
        self._store.delete(f"jobs/{id}/request.json")
        published = job.version is not None and not Models(self._store).deleted(job.request.model, job.version)
        files = job.outcome.files if published and job.outcome else {}
        delete_except(self._store, f"jobs/{id}", {files[kind].key for kind in MODEL_FILES if kind in files})

    def gone(self, id: str) -> bool:
        """Whether there is no such job and none is just being made: that is open before it has a folder, and has its request last."""
        return not self._store.exists(f"open/{id}") and not self._store.exists(f"jobs/{id}/request.json")

    def remove_leftovers(self, job: Job) -> None:
        """Remove the files of the attempts at a finished job that its outcome does not name."""
        folder = f"jobs/{job.request.id}/attempts"
        named = {file.key for file in job.outcome.files.values()} if job.outcome else set()
        for name in self._store.children(folder):
            if not name.endswith(".json"):
                delete_except(self._store, f"{folder}/{name}", named)

    def cancel(self, id: str) -> Job:
        """Ask that a job stop; one that no worker has begun is over at once. Raises NotFound, JobNotCancellable."""
        job = self.get(id)
        if job.state.final or job.outcome is not None:
            raise JobNotCancellable(id, job.state.value)
        if not records.create(self._store, f"jobs/{id}/cancel.json", Cancellation(requested_at=datetime.now(UTC))):
            raise JobNotCancellable(id, self.get(id).state.value)
        # a worker that claims an attempt after this line sees the wish; one that did so before is listed now
        if self.last_attempt(id) == 0:
            self.record_outcome(id, Outcome(state=JobState.CANCELLED, attempt=0, finished_at=datetime.now(UTC)))
            self.close(id)
        return self.get(id)

    def cancel_requested(self, id: str) -> bool:
        """Whether the job was asked to stop."""
        return self._store.exists(f"jobs/{id}/cancel.json")

    def claim_attempt(self, id: str, worker: str, number: int | None = None) -> Attempt | None:
        """Claim the next attempt (which must be ``number``, if given); None if the job is over or another worker claimed it first."""
        last = self.last_attempt(id)
        if self.has_outcome(id) or number not in (None, last + 1):
            return None
        attempt = Attempt(number=last + 1, worker=worker, started_at=datetime.now(UTC))
        return attempt if records.create(self._store, f"jobs/{id}/attempts/{attempt.number}.json", attempt) else None

    def last_attempt(self, id: str) -> int:
        """Number of the newest attempt; 0 if there is none."""
        numbers = (re.fullmatch(r"(\d+)\.json", name) for name in self._store.children(f"jobs/{id}/attempts"))
        return max((int(match[1]) for match in numbers if match), default=0)

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
        """Record that an attempt ended unfinished though its worker lives: it was told to stop, or overtaken."""
        records.create(self._store, f"jobs/{id}/attempts/{number}.returned.json", _Return(returned_at=datetime.now(UTC)))

    def record_death(self, id: str, number: int, death: Death) -> None:
        """Record how the process of an attempt ended."""
        records.create(self._store, f"jobs/{id}/attempts/{number}.killed.json", death)

    def death(self, id: str, number: int) -> Death | None:
        """How the process of an attempt ended, if anybody saw it."""
        return records.find(self._store, f"jobs/{id}/attempts/{number}.killed.json", Death)

    def deaths(self, id: str) -> int:
        """How many attempts were begun and not handed back; of a job that nobody runs, how many workers it has cost."""
        names = self._store.children(f"jobs/{id}/attempts")
        return sum(1 for name in names if re.fullmatch(r"\d+\.json", name)) - sum(1 for name in names if name.endswith(".returned.json"))

    def record_outcome(self, id: str, outcome: Outcome) -> bool:
        """Record how the job ended; false if it had ended already, and then nothing changes. Who repeats it is told the same again."""
        key, data = f"jobs/{id}/outcome.json", records.encode(outcome)
        return self._store.create(key, data) or self._store.read(key) == data

    def has_outcome(self, id: str) -> bool:
        """Whether the job has an outcome (that of a success may still have to be published)."""
        return self._store.exists(f"jobs/{id}/outcome.json")

    def publish(self, id: str) -> Version | None:
        """Make a success a version of its model; the same version however often and by however many it is called. None for other jobs."""
        outcome = records.find(self._store, f"jobs/{id}/outcome.json", Outcome)
        if outcome is None or outcome.state is not JobState.SUCCEEDED:
            return None
        version = Models(self._store).publish(self._request(id), outcome)
        records.create(self._store, f"jobs/{id}/published.json", Publication(name=version.name, version=version.number))
        self.close(id)
        return version

    def close(self, id: str) -> None:
        """Take a job that is over off the list of the unfinished."""
        self._store.delete(f"open/{id}")

    def unfinished_ids(self) -> Sequence[str]:
        """Ids of the jobs that are not known to be over, oldest first."""
        return self._store.children("open")

    def open_jobs(self, but: Set[str] = frozenset()) -> Iterator[tuple[str, Job | None]]:
        """The jobs that are not known to be over, oldest first, but those named in ``but``; None for one whose request was never stored."""
        for id in self.unfinished_ids():
            if id in but:
                continue
            try:
                yield id, self.get(id)
            except NotFound:
                yield id, None

    def attempts_of(self, worker: str) -> Iterator[tuple[str, int]]:
        """The attempts that are under way, as far as is known, by a worker whose name begins with ``worker``: their jobs and numbers."""
        for id in self.unfinished_ids():
            number = self.last_attempt(id)
            attempt = records.find(self._store, f"jobs/{id}/attempts/{number}.json", Attempt) if number else None
            if attempt and attempt.worker.startswith(worker) and not self._store.exists(f"jobs/{id}/attempts/{number}.returned.json"):
                yield id, number

    def unfinished(self) -> Iterator[Job]:
        """The jobs that are not over (or not yet published), oldest first."""
        return (job for _, job in self.open_jobs() if job is not None and not job.state.final)

    def unfinished_job_of(self, dataset: Dataset) -> Job | None:
        """An unfinished job of this dataset, if there is one."""
        return next((job for job in self.unfinished() if job.request.dataset == dataset.id), None)

    def starting_from(self, name: str, numbers: Collection[int]) -> Job | None:
        """An unfinished job that starts from one of these versions, if there is one."""
        starts = {Publication(name=name, version=number) for number in numbers}
        return next((job for job in self.unfinished() if job.request.start in starts), None)

    def _request(self, id: str) -> JobRequest:
        if not is_id("job", id):
            raise NotFound("job", id)
        try:
            return records.read(self._store, f"jobs/{id}/request.json", JobRequest)
        except KeyMissing:
            raise NotFound("job", id) from None


def _state(outcome: Outcome | None, published: Publication | None, attempt: Attempt | None, cancelled: bool) -> JobState:
    if outcome is not None:
        return JobState.RUNNING if outcome.state is JobState.SUCCEEDED and published is None else outcome.state
    if cancelled:
        return JobState.CANCELLING
    return JobState.QUEUED if attempt is None else JobState.RUNNING
