"""Invariants that must hold after a storm. Each yields a sentence for every violation."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from storage.errors import NotFound
from storage.records import Dataset, File, Job, Version
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.webhooks import EVENTS
from storage.store import Store, json_records
from storage.store.local_files import sha256_of
from tests.stores import sparse
from tests.storm.ledger import REDIS_AWAY, Answer, Fault, Kind, Ledger

SOON_SECONDS = 10.0
"""Seconds within which, on an idle machine, a job whose worker has died runs again, and every request is answered or
its connection ends."""
_EXPECTED = {200, 201, 202, 204, 404, 409}


class Evidence(NamedTuple):
    """Evidence after a storm, when garbage collection and retention have run."""

    ledger: Ledger
    store: Store
    root: Path
    """folder of the store"""
    drain_seconds: float
    known: Mapping[int, str]
    """digest of the uploaded documents, by their number"""
    max_attempts: int = 3
    soon_seconds: float = SOON_SECONDS
    """seconds that count as soon; for a third of that after a fault, and before it is recorded, requests may be
    refused"""

    @property
    def jobs(self) -> Iterator[Job]:
        return Jobs(self.store).every()

    @property
    def versions(self) -> list[Version]:
        """All versions ever made, deleted ones included."""
        return [
            json_records.read(self.store, f"models/{name}/versions/{entry}", Version)
            for name in self.store.children("models")
            for entry in self.store.children(f"models/{name}/versions")
        ]

    def began(self, job: str, attempt: int) -> float | None:
        """Time at which an attempt began by the clock of the file system, which nobody sets; None if it never did."""
        path = self.root / f"jobs/{job}/attempts/{attempt}.json"
        return path.stat().st_mtime if path.exists() else None


class RunAgain(NamedTuple):
    """A job after the death of its worker, or of a child of it."""

    kind: Kind
    job: str
    seconds: float | None
    """seconds until its next attempt began; None if it never did"""
    disturbed: float
    """seconds until the end of the last other fault meanwhile; 0 if there was none"""


def accepted_jobs_have_ended(evidence: Evidence) -> Iterator[str]:
    for id, seen in evidence.ledger.jobs.items():
        try:
            state = Jobs(evidence.store).get(id).state
        except NotFound:
            yield f"job {id} was accepted and is lost"
            continue
        if not state.final:
            yield f"job {id} is still {state.value}"
        if seen - {state.value}:
            yield f"job {id} is {state.value} and was shown as {', '.join(sorted(seen))}"


def no_job_was_doubled(evidence: Evidence) -> Iterator[str]:
    """One job for each idempotency key, and none that no client knows."""
    for key, jobs in evidence.ledger.keys.items():
        if len(jobs) > 1:
            yield f"key {key} made {len(jobs)} jobs"
    for job in evidence.jobs:
        if job.request.id not in evidence.ledger.jobs:
            yield f"job {job.request.id} was never accepted"


def successes_have_one_version(evidence: Evidence) -> Iterator[str]:
    made: dict[str, list[Version]] = {}
    for version in evidence.versions:
        made.setdefault(version.job, []).append(version)
    for job in evidence.jobs:
        versions = made.pop(job.request.id, [])
        told = [(job.request.model, job.version)] if job.version is not None else []
        if [(version.name, version.number) for version in versions] != told:
            yield (
                f"job {job.request.id} is {job.state.value}, tells of {told} and has "
                f"{[(each.name, each.number) for each in versions]}"
            )
        for version in versions:
            yield from (
                f"version {version.name}/{version.number}: {wrong}" for wrong in _damages(evidence, version.files)
            )
    for job_id in made:
        yield f"versions are of job {job_id}, which does not exist"


def versions_have_no_gaps(evidence: Evidence) -> Iterator[str]:
    names: dict[str, list[int]] = {}
    for version in evidence.versions:
        names.setdefault(version.name, []).append(version.number)
    for name, numbers in names.items():
        if sorted(numbers) != list(range(1, len(numbers) + 1)):
            yield f"model {name} has versions {sorted(numbers)}"


def promised_datasets_are_whole(evidence: Evidence) -> Iterator[str]:
    """All other visible datasets are whole, too."""
    visible = {dataset.id: dataset for dataset in Datasets(evidence.store).every()}
    for id, promise in list(evidence.ledger.datasets.items()):
        found = visible.get(id)
        if found is None:
            yield f"dataset {id} was promised and is missing"
        elif (found.n_documents, found.sha256, found.name) != promise:
            yield f"dataset {id} is not what was promised"
    for dataset in visible.values():
        yield from (f"dataset {dataset.id}: {wrong}" for wrong in _torn(evidence, dataset))


def received_answers_are_in_the_log_once(evidence: Evidence) -> Iterator[str]:
    """People's answers to documents, as long as the dataset is there."""
    visible = {dataset.id for dataset in Datasets(evidence.store).every()}
    for dataset, received in evidence.ledger.annotations.items():
        if dataset in visible:
            log = Datasets(evidence.store).log(dataset)
            kept = Counter(entry.id for _, entry in log.between(0, log.refreshed()))
            yield from (
                f"dataset {dataset}: annotation {id} was received and is not in the log"
                for id in sorted(received - kept.keys())
            )
            yield from (
                f"dataset {dataset}: annotation {id} is in the log {count} times"
                for id, count in kept.items()
                if count > 1
            )


def receivers_were_told(evidence: Evidence) -> Iterator[str]:
    """Each of them of the end of each job and of each version, at least once, and of nothing else."""
    events = {f"{version.job}.version.published" for version in evidence.versions}
    events |= {f"{job.request.id}.job.ended" for job in evidence.jobs if job.state.final}
    known = {f"{job.request.id}.{event}" for job in evidence.jobs for event in EVENTS}
    for receiver, told in evidence.ledger.told.items():
        yield from (f"{receiver} was not told of {event}" for event in sorted(events - {*told}))
        yield from (f"{receiver} was told of {event}" for event in sorted({*told} - known))


def nothing_else_is_visible(evidence: Evidence) -> Iterator[str]:
    """A dataset may exist after a request without an answer, not after a refusal or a deletion."""
    for dataset in Datasets(evidence.store).every():
        if dataset.name in evidence.ledger.refused:
            yield f"dataset {dataset.id} was refused and is there"
        if dataset.id in evidence.ledger.deleted:
            yield f"dataset {dataset.id} was deleted and is there"


def nothing_is_left_behind(evidence: Evidence) -> Iterator[str]:
    """No temporary file, no half dataset, no mark, no file of an attempt without an outcome."""
    store = evidence.store
    yield from (f"{path} is left" for path in evidence.root.glob(".staging/*/*"))
    for id in store.children("datasets"):
        if not store.exists(f"datasets/{id}/manifest.json") and not store.children(f"datasets/{id}/shared"):
            yield f"half a dataset is left: {id}"
        for other in store.children(f"datasets/{id}/shared"):
            if not store.exists(f"datasets/{other}/manifest.json"):
                yield f"the mark of a relabeling is left: {id}/{other}"
    for folder in ("open", "deleting"):
        yield from (f"{folder}/{name} is left" for name in store.children(folder))
    for job in evidence.jobs:
        named = {file.key for file in job.outcome.files.values()} if job.outcome else set()
        folder = f"jobs/{job.request.id}/attempts"
        files = (path.relative_to(evidence.root).as_posix() for path in (evidence.root / folder).glob("*/*"))
        yield from (f"{key} is left" for key in files if key not in named)


def failures_are_explained(evidence: Evidence) -> Iterator[str]:
    """A job fails after three deaths only, and says so."""
    for job in evidence.jobs:
        error = job.outcome.error if job.outcome else None
        if job.state.value == "failed" and (
            error is None
            or error.type != "/problems/worker-died"
            or Jobs(evidence.store).deaths(job.request.id) < evidence.max_attempts
        ):
            yield f"job {job.request.id} ({job.request.algorithm}) failed: {error}"


def killed_jobs_run_again_soon(evidence: Evidence) -> Iterator[str]:
    """Counted from the death, or from the end of the last fault before."""
    for again in run_again(evidence):
        if again.seconds is None:
            yield f"{again.kind.value}: job {again.job} never ran again"
        elif again.seconds - again.disturbed > evidence.soon_seconds:
            last = f"the last fault before that ended after {again.disturbed:.1f} s"
            yield f"{again.kind.value}: job {again.job} ran again after {again.seconds:.1f} s, {last}"


def told_to_end_workers_do(evidence: Evidence) -> Iterator[str]:
    """Within the drain time; their jobs have ended or were handed back."""
    killed = {
        running for fault in evidence.ledger.faults if fault.kind is not Kind.WORKER_TOLD for running in fault.hit
    }
    for fault in (fault for fault in evidence.ledger.faults if fault.kind is Kind.WORKER_TOLD):
        took = fault.ended - fault.began
        if took > evidence.drain_seconds + evidence.soon_seconds:
            yield f"a worker took {took:.1f} s to end; {evidence.drain_seconds:g} s are configured"
        for job, attempt in set(fault.hit) - killed:
            outcome = Jobs(evidence.store).get(job).outcome
            done = outcome is not None and outcome.attempt == attempt
            if not done and not evidence.store.exists(f"jobs/{job}/attempts/{attempt}.returned.json"):
                yield f"job {job}, attempt {attempt} was not handed back"


def answers_are_expected(evidence: Evidence) -> Iterator[str]:
    """503 and 507 during faults only, nothing worse ever."""
    for answer in evidence.ledger.answers:
        trouble = answer.status in (503, 507) and _during(evidence, answer, evidence.soon_seconds / 3)
        if answer.status is not None and answer.status not in _EXPECTED and not trouble:
            yield f"{answer.what} was answered with {answer.status}"
        if answer.status == 503 and answer.retry_after is None:
            yield f"{answer.what} was answered with 503 without Retry-After"


def nothing_hangs(evidence: Evidence) -> Iterator[str]:
    """Every request ends soon, not counting the time for which the gateway was stopped."""
    for answer in evidence.ledger.answers:
        stopped = sum(
            max(0.0, min(answer.ended, fault.ended) - max(answer.began, fault.began))
            for fault in evidence.ledger.faults
            if fault.kind in (Kind.GATEWAY_STOPPED, Kind.ALL_STOPPED)
        )
        if answer.ended - answer.began - stopped > evidence.soon_seconds:
            yield f"{answer.what} took {answer.ended - answer.began:.1f} s"


def without_redis_it_predicts_and_reads(evidence: Evidence) -> Iterator[str]:
    """It also refuses new jobs, and says when to retry."""
    for fault in (fault for fault in evidence.ledger.faults if fault.kind in REDIS_AWAY):
        inside = [each for each in evidence.ledger.answers if fault.began < each.began and each.ended < fault.ended]
        if not {"predict", "read"} <= {answer.what for answer in inside}:
            yield f"{fault.kind.value}: nobody was answered for {fault.ended - fault.began:.1f} s"
        for answer in inside:
            if answer.what in ("predict", "read") and answer.status != 200:
                yield f"{fault.kind.value}: {answer.what} was answered with {answer.status}"
            if answer.what == "train" and answer.status != 503:
                yield f"{fault.kind.value}: a new job was answered with {answer.status}"


def clients_got_final_answers(evidence: Evidence) -> Iterator[str]:
    yield from evidence.ledger.broken


def it_ends_when_told(evidence: Evidence) -> Iterator[str]:
    """The whole service ends in time, and none of its processes stays."""
    code, seconds, left = evidence.ledger.stopped
    if code != 0 or left:
        yield f"the service ended with code {code} and left {', '.join(left) or 'nothing'}"
    if seconds > evidence.drain_seconds + 2 * evidence.soon_seconds:
        yield f"the service took {seconds:.1f} s to end"


INVARIANTS: tuple[Callable[[Evidence], Iterator[str]], ...] = (
    accepted_jobs_have_ended,
    no_job_was_doubled,
    successes_have_one_version,
    versions_have_no_gaps,
    promised_datasets_are_whole,
    received_answers_are_in_the_log_once,
    receivers_were_told,
    nothing_else_is_visible,
    nothing_is_left_behind,
    failures_are_explained,
    killed_jobs_run_again_soon,
    told_to_end_workers_do,
    answers_are_expected,
    nothing_hangs,
    without_redis_it_predicts_and_reads,
    clients_got_final_answers,
    it_ends_when_told,
)


def violations(evidence: Evidence) -> dict[str, list[str]]:
    """Violations, by invariant."""
    found = {check.__name__: list(check(evidence)) for check in INVARIANTS}
    return {name: wrong for name, wrong in found.items() if wrong}


def run_again(evidence: Evidence) -> list[RunAgain]:
    """The jobs that ran in processes that were killed, unless they had ended or were cancelled."""
    found = []
    for fault in evidence.ledger.faults:
        for job, attempt in fault.hit if fault.kind in (Kind.WORKER_KILLED, Kind.CHILD_KILLED) else ():
            began = evidence.began(job, attempt + 1)
            if began is not None:
                others = (each for each in evidence.ledger.faults if each is not fault)
                ends = (
                    min(each.ended, began) - fault.began
                    for each in others
                    if each.began < began and each.ended > fault.began
                )
                found.append(RunAgain(fault.kind, job, began - fault.began, max(ends, default=0.0)))
            elif not _settled(Jobs(evidence.store).get(job), attempt, evidence):
                found.append(RunAgain(fault.kind, job, None, 0.0))
    return found


def _settled(job: Job, attempt: int, evidence: Evidence) -> bool:
    """Whether the job did not have to run again after this attempt: it had ended, was cancelled, or had died too
    often."""
    if (
        Jobs(evidence.store).cancel_requested(job.request.id)
        or Jobs(evidence.store).deaths(job.request.id) >= evidence.max_attempts
    ):
        return True
    return job.outcome is not None and job.outcome.attempt == attempt and job.outcome.status is not None


def _damages(evidence: Evidence, files: Mapping[str, File]) -> Iterator[str]:
    for file in files.values():
        path = evidence.root / file.key
        if not path.is_file():
            yield f"{file.key} is missing"
        elif sha256_of(path) != (file.sha256, file.bytes):
            yield f"{file.key} is damaged"


def _torn(evidence: Evidence, dataset: Dataset) -> Iterator[str]:
    damages = list(_damages(evidence, dataset.files))
    yield from damages
    if damages:
        return
    documents = Datasets(evidence.store).open(dataset.id)
    rows = sparse(documents.rows)
    if (rows.n_rows, rows.n_nonzeros, len(documents.class_indices)) != (
        dataset.n_documents,
        dataset.n_nonzeros,
        dataset.n_documents,
    ):
        yield "its arrays do not fit its manifest"
    if dataset.documents == dataset.id and dataset.sha256 != evidence.known.get(dataset.n_documents, dataset.sha256):
        yield "its documents are not those that were sent"


def _during(evidence: Evidence, answer: Answer, margin: float) -> bool:
    return any(
        fault.began - margin <= answer.ended and answer.began <= fault.ended + margin
        for fault in evidence.ledger.faults
    )


def counts(evidence: Evidence) -> Counter[str]:
    """Number of jobs by final state."""
    return Counter(job.state.value for job in evidence.jobs if job.request.id in evidence.ledger.jobs)


def superseded(evidence: Evidence) -> int:
    """Number of attempts that ended without an outcome and without a death."""
    return sum(
        1
        for job in evidence.jobs
        for name in evidence.store.children(f"jobs/{job.request.id}/attempts")
        if name.endswith(".returned.json")
    )


def pauses(faults: list[Fault]) -> list[float]:
    """Seconds between the end of a fault and the beginning of the next."""
    ordered = sorted(faults, key=lambda fault: fault.began)
    return [after.began - before.ended for before, after in pairwise(ordered)]
