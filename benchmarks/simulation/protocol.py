"""Gateways, workers and reconcilers in a simulated world: their own code, but for the training and the threads of the
heartbeat.

Submitting with idempotency keys, cancelling, leases and heartbeats, claiming, recording outcomes, publishing and
reconciling are simulated. So are relabeling and deleting datasets, aliases, deleting versions and jobs, garbage
collection and retention (``benchmarks.simulation.keepers``), and an upgrade, with processes of two
releases (``benchmarks.simulation.upgrade``).

A world has a storm, then calm. Afterwards every job has ended, and the invariants hold (``violations``).
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple, Self
from unittest.mock import patch

from redis.exceptions import RedisError

from benchmarks.simulation import receivers
from benchmarks.simulation.keepers import (
    ABANDONED_SECONDS,
    Keepers,
    Upkeep,
    at_rest,
    leftovers,
    versions_of,
    violations_of_keepers,
)
from benchmarks.simulation.outside import SimulatedQueue, SimulatedRedis, SimulatedState, SimulatedStore, decoded
from benchmarks.simulation.receivers import Receivers
from benchmarks.simulation.upgrade import FINGERPRINT, KEY, Upgrade
from benchmarks.simulation.world import Odds, World, uncollected
from core.problem import Status
from storage import names
from storage.errors import Conflict, JobDeleted, NotFound, Unavailable
from storage.process.settings import Settings
from storage.queue import leases
from storage.records import JobDraft, JobRequest, JobState, Outcome, Publication, Record, Version
from storage.repositories import aliases as alias_records
from storage.repositories import idempotency, job_attempts, sightings
from storage.repositories import jobs as job_records
from storage.repositories import models as model_records
from storage.repositories import webhooks as webhook_records
from storage.repositories.idempotency import IdempotencyKey
from storage.repositories.jobs import Jobs
from storage.upkeep import cleanup, reconcile
from storage.upkeep.binding import admit
from storage.upkeep.reconcile import Reconciler
from workers.worker import attempt as attempts
from workers.worker import heartbeat, store_retry, store_watch
from workers.worker.attempt import Attempts, RunningAttempt
from workers.worker.context import WorkerContext
from workers.worker.heartbeat import StopReason
from workers.worker.store_watch import StoreWatch

_SETTINGS = Settings(lease_seconds=3.0, job_timeout_seconds=1e9, max_attempts=3)
_STORM_SECONDS = 60.0
_END_SECONDS = 1200.0
"""Seconds of the clock in which all jobs must have ended; the longest of 150 seeds took 74."""
_IMPATIENT_SHARE = 0.5
"""Share of the clients that send their request to a second gateway, soon after the first."""
_PATIENCE_SECONDS = 5.0
_JOBS, _WORKERS, _GATEWAYS = 6, 3, 2
_META = b'{"classes": ["no", "yes"], "n_features": 1}'


class Run(NamedTuple):
    """The end of a world."""

    ended: bool
    """Whether all jobs ended in time."""
    store: SimulatedStore
    accepted: dict[str, set[str]]
    """Jobs that clients were told, by idempotency key."""
    cancelled: set[str]
    """Jobs that a client may have cancelled."""
    without_dataset: list[str]
    """Jobs that were trained without their dataset."""
    trace: list[tuple[float, str, str, str]]
    """See World."""
    failure: BaseException | None
    """An error that no process expects."""
    receivers: Receivers

    @property
    def calls(self) -> list[str]:
        """The trace in words."""
        return [f"{at:.3f} {process} {what} {fate}" for at, process, what, fate in self.trace]


class _Heartbeat:
    """In place of the thread of a heartbeat an actor of the same process, which renews the lease."""

    progress, trace, without_redis = None, (), False

    def __init__(self, simulation: "Simulation", context: WorkerContext, job_id: str, number: int) -> None:
        self._simulation, self._attempt = simulation, (job_id, number)
        self._leases, self._worker = context.redis_state.leases, context.worker
        self.reason: StopReason | None = None
        self.ended = False

    def stop(self, reason: StopReason) -> None:
        """See Heartbeat."""
        self.reason = self.reason or reason

    def __enter__(self) -> "_Heartbeat":
        self._simulation.world.spawn(self._worker, self._beat)
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True

    def _beat(self) -> None:
        while not self.ended:
            with suppress(Unavailable):
                self._leases.renew(*self._attempt, self._worker, _SETTINGS.lease_seconds)
            self._simulation.world.sleep(_SETTINGS.lease_seconds / 4)


class _Watch(StoreWatch):
    """In place of its thread an actor."""

    def __init__(self, simulation: "Simulation", jobs: Jobs, job_id: str, attempt: int, heartbeat: Any) -> None:
        super().__init__(jobs, job_id, attempt, heartbeat)
        self._world, self._worker, self._over = simulation.world, heartbeat._worker, False

    def __enter__(self) -> Self:
        self._world.spawn(self._worker, self._look)
        return self

    def __exit__(self, *_: object) -> None:
        self._over = True

    def _look(self) -> None:
        while not self._over:
            if self._heartbeat.reason is None:
                self._check()
            self._world.sleep(1.0)


class _RunningAttempt(RunningAttempt):
    """An attempt with some sleeps and a file in place of a training."""

    def __init__(self, simulation: "Simulation", context: WorkerContext, job_id: str, number: int) -> None:
        super().__init__(context, job_id, number)
        self._simulation = simulation

    def _train(self, request: JobRequest) -> Outcome | None:
        world, store = self._simulation.world, self._simulation.store
        if self._retry.call(lambda: self._jobs.cancel_requested(request.id)):
            return self._ended(JobState.CANCELLED)
        for _ in range(world.random.randrange(1, 8)):
            world.sleep(0.5)
            if self.heartbeat.reason is not None:
                return self._after_stop()
        self._simulation.keepers.trained(request.id, request.dataset)
        file = self._retry.call(lambda: store.add_file(f"{self._prefix}/model.json", _META))
        return self._ended(JobState.SUCCEEDED).model_copy(
            update={"status": Status.CONVERGED, "files": {"model_meta": file}}
        )


class Simulation:
    """One world with its processes."""

    def __init__(self, seed: int, odds: Odds) -> None:
        self.world = World(seed, odds, _STORM_SECONDS)
        self.store = SimulatedStore(self.world)
        self.redis = SimulatedRedis(self.world)
        self.queue: Any = SimulatedQueue(self.redis)
        self.state: Any = SimulatedState(self.redis)
        self.keepers = Keepers(self.world, self.store)
        self._upkeep = Upkeep(self.world, self.store, self.keepers)
        self._upgrade = Upgrade(self.world, self.store)
        self.receivers = Receivers(self.world, self.store)
        self.accepted: dict[str, set[str]] = defaultdict(set)
        self.cancelled: set[str] = set()
        self._promised: set[str] = set()
        """Jobs whose submission found their dataset. Another may be stored when its dataset goes, and cannot be refused
        while the store fails."""
        self._waiting = {f"key-{number}" for number in range(_JOBS)}
        self._roles: dict[str, tuple[str, Any]] = {}
        self._born = 0
        self._seen, self._rests = (-1, -1), False
        self.world.on_death = self._replace

    def run(self) -> Run:
        """The whole run. It leaves nothing behind."""
        with _patched(self), receivers.patched(self.world), uncollected():
            dataset = self.keepers.inherit()
            self.receivers.register()
            if self._upgrade.planned:
                self._promised.add(self._upgrade.inherit(dataset))
                self._waiting.add(KEY)
                self._start("upgrade", self._replace_all)
            for key in sorted(self._waiting):
                begins = self.world.random.uniform(0, _STORM_SECONDS / 2)
                self._start("client", lambda process, key=key: self._submit(key), begins)
                if self.world.random.random() < _IMPATIENT_SHARE:
                    # its first request hangs or is lost, for all it knows, and may be heard all the same
                    after = begins + self.world.random.uniform(0, _PATIENCE_SECONDS)
                    self._start("client", lambda process, key=key: self._submit(key), after)
            for _ in range(_WORKERS):
                self._start("worker", self._admitted(self._work))
            for _ in range(_GATEWAYS):
                self._start("gateway", self._admitted(self._reconcile))
                self._start("postman", self.receivers.deliver)
            for keep in (
                self.keepers.keep_datasets,
                self.keepers.keep_datasets,
                self.keepers.keep_versions,
                self.keepers.keep_versions,
            ):
                self._start("keeper", keep)
            for _ in range(_GATEWAYS):
                self._start("cleaner", self._upkeep.clean_up)
            self._start("deleter", self._upkeep.delete_jobs)
            self._start("accident", self._accident)
            ended = self.world.run(self._finished, _END_SECONDS)
        missing = [job for job in self.keepers.found_missing if job in self._promised]
        return Run(
            ended,
            self.store,
            self.accepted,
            self.cancelled,
            missing,
            self.world.calls,
            self.world.failure,
            self.receivers,
        )

    def _start(self, role: str, act: Any, after: float = 0.0) -> None:
        self._born += 1
        process = f"{role}-{self._born}"
        self._roles[process] = role, act
        self._upgrade.started(process)
        self.world.spawn(process, lambda: act(process), after)

    def _replace(self, process: str) -> None:
        """Another process takes the place of one that has died."""
        role, act = self._roles[process]
        self._start(role, act, self.world.random.uniform(0.5, 3.0))

    def _replace_all(self, process: str) -> None:
        """The upgrade; its own process goes on as one that does nothing."""
        self._upgrade.replace_all(lambda: [each for each in self.world.processes if each != process])

    def _admitted(self, act: Any) -> Any:
        """A process that begins with the admission to the store, as gateways and workers do."""

        def acting(process: str) -> None:
            store: Any = self.store
            while True:
                with suppress(Unavailable):
                    admit(store)
                    break
                self.world.sleep(1.0)
            act(process)

        return acting

    def _finished(self) -> bool:
        """Whether all is done. It is asked after every turn, and looks again when something has changed."""
        state = self.store.content.changes, len(self._waiting)
        if state != self._seen:
            self._seen = state
            self._rests = (
                not self._waiting
                and not self.store.below("open")
                and not self.store.below("outbox")
                and at_rest(self.store)
                and not list(leftovers(self.store))
            )
        return self._rests

    def _submit(self, key: str) -> None:
        """A client that asks until it is told a job.

        It asks again with the same key after a failure, and after the death of its gateway.
        """
        store: Any = self.store
        jobs = Jobs(store)
        while key in self._waiting:
            with suppress(Unavailable, NotFound):
                dataset = self.keepers.any_dataset()
                try:
                    job, created = jobs.create(
                        JobDraft(dataset=dataset, model="m", algorithm="svm"), IdempotencyKey(key, None, FINGERPRINT)
                    )
                except JobDeleted as deleted:
                    self._told(key, deleted.id)
                    return
                if created and not job.state.final:
                    self._promised.add(job.request.id)
                if created:
                    with suppress(Unavailable):
                        self.queue.enqueue(job.request.id)
                self._told(key, job.request.id)
                if self.world.random.random() < 0.2:
                    self._cancel(jobs, job.request.id)
                return
            self.world.sleep(1.0)

    def _told(self, key: str, job: str) -> None:
        self.accepted[key].add(job)
        self._waiting.discard(key)

    def _cancel(self, jobs: Jobs, id: str) -> None:
        self.world.sleep(self.world.random.uniform(0, 5))
        self.cancelled.add(id)
        with suppress(Unavailable, Conflict):
            jobs.cancel(id)

    def _work(self, process: str) -> None:
        store: Any = self.store
        context = WorkerContext(_SETTINGS, store, self.state, self.queue, process, 1, 1, 0)
        while True:
            with suppress(Unavailable):
                id = self.queue.take()
                if id is not None:
                    Attempts(context).run(id)
            self.world.rest(0.3)

    def _reconcile(self, process: str) -> None:
        store: Any = self.store
        limits = {"lease_seconds": _SETTINGS.lease_seconds, "abandoned_seconds": ABANDONED_SECONDS}
        reconciler = Reconciler(
            Jobs(store),
            self.state,
            self.queue,
            max_attempts=_SETTINGS.max_attempts,
            clock=lambda: self.world.now,
            **limits,
        )
        while True:
            with suppress(Unavailable):
                reconciler.reconcile()
            self.world.rest(1.0)

    def _accident(self, process: str) -> None:
        """Redis loses everything, now and then, and clocks are set."""
        while not self.world.calm:
            self.world.sleep(self.world.random.uniform(5, 60))
            self.world.set_clocks()
            if not self.world.calm and self.world.random.random() < 0.5:
                with suppress(RedisError):
                    self.redis.lose_all()


def _patched(simulation: Simulation) -> ExitStack:
    """The clock, the chance and the threads of the world in place of the machine's, until the stack is closed."""
    world, chance, stack = simulation.world, Random(simulation.world.random.random()), ExitStack()
    clock = SimpleNamespace(
        time=lambda: world.wall,
        time_ns=lambda: int(world.wall * 1e9),
        monotonic=lambda: world.now,
        monotonic_ns=lambda: int(world.now * 1e9),
        sleep=world.sleep,
    )
    stack.enter_context(patch.object(Record, "model_validate_json", classmethod(_decoded)))
    stack.enter_context(patch.object(names, "time", clock))
    stack.enter_context(patch.object(names, "secrets", SimpleNamespace(token_bytes=chance.randbytes)))
    for room in (leases, sightings, heartbeat, store_retry, store_watch, cleanup):
        stack.enter_context(patch.object(room, "time", clock))
    calendar = SimpleNamespace(now=lambda zone: datetime.fromtimestamp(world.wall, zone))
    rooms = (
        job_records,
        job_attempts,
        model_records,
        alias_records,
        attempts,
        reconcile,
        cleanup,
        webhook_records,
    )
    for room in rooms:
        stack.enter_context(patch.object(room, "datetime", calendar))
    for room in (job_records, job_attempts, model_records, idempotency):
        stack.enter_context(patch.object(room, "in_parallel", map))
    stack.enter_context(patch.object(attempts, "RunningAttempt", partial(_RunningAttempt, simulation)))
    stack.enter_context(patch.object(attempts, "Heartbeat", partial(_Heartbeat, simulation)))
    stack.enter_context(patch.object(attempts, "StoreWatch", lambda *given: _Watch(simulation, *given)))
    return stack


def _decoded(kind: Any, data: bytes) -> Any:
    return decoded(kind, data)


def violations(run: Run) -> Iterator[str]:
    """A sentence for each invariant that does not hold after a run."""
    if run.failure is not None:
        yield f"{type(run.failure).__name__}: {run.failure}"
        return
    if not run.ended:
        yield "not all jobs have ended, or something is left"
        return
    store = run.store
    yield from violations_of_keepers(store)
    yield from (f"job {job} was trained without its dataset" for job in run.without_dataset)
    for key, ids in run.accepted.items():
        if len(ids) != 1:
            yield f"{key} made {len(ids)} jobs"
    known = set().union(*run.accepted.values())
    # the job that the upgrade inherits had ended before there were receivers
    yield from run.receivers.violations(store, {id for id in known - run.accepted[KEY] if _is_there(store, id)})
    # one whose dataset was deleted in this moment is refused, and has failed
    made = {
        id
        for id in store.below("jobs")
        if _is_there(store, id) and not _was_refused(store, id) and not _is_half_deleted(store, id)
    }
    yield from (f"job {id} was made for nobody" for id in sorted(made - known))
    versions = versions_of(store)
    if sorted(versions) != list(range(1, len(versions) + 1)):
        yield f"the versions are {sorted(versions)}"
    for id in sorted(known):
        yield from _violations_of(run, id, [version for version in versions.values() if version.job == id])


def _violations_of(run: Run, id: str, versions: list[Version]) -> Iterator[str]:
    store, folder = run.store, f"jobs/{id}"
    outcome = store.last_record(f"{folder}/outcome.json", Outcome)
    if outcome is None:
        yield f"job {id} was accepted and has no outcome"
        return
    if outcome.state is JobState.CANCELLED and id not in run.cancelled:
        yield f"job {id} was cancelled by nobody"
    deaths = _count(store, id, "json") - _count(store, id, "returned.json")
    if (
        outcome.state is JobState.FAILED
        and deaths < _SETTINGS.max_attempts
        and not _was_refused(store, id)
        and _is_there(store, id)
    ):
        yield f"job {id} failed after {deaths} deaths"
    if len(versions) != int(outcome.state is JobState.SUCCEEDED):
        yield f"job {id} is {outcome.state.value} and has {len(versions)} versions"
    for version in versions:
        published = store.last_record(f"{folder}/published.json", Publication)
        if published is None or published.version != version.number:
            yield f"job {id} does not say that it is version {version.number}"
        if version.files != outcome.files:
            yield f"version {version.number} is not of the outcome of job {id}"
        if f"models/m/deleted/{version.number}.json" not in store.content:
            yield from (
                f"version {version.number} has lost {file.key}"
                for file in version.files.values()
                if file.key not in store.content
            )


def _is_there(store: SimulatedStore, id: str) -> bool:
    """Whether a job was not deleted."""
    return f"jobs/{id}/request.json" in store.content


def _is_half_deleted(store: SimulatedStore, id: str) -> bool:
    """Whether the deletion of a job was cut short when its idempotency key was retired, as is done first."""
    request = store.record(f"jobs/{id}/request.json", JobRequest)
    return request is not None and f"idempotency/{request.key}.{id}" in store.content


def _was_refused(store: SimulatedStore, id: str) -> bool:
    """Whether a job has failed before it was queued."""
    outcome = store.last_record(f"jobs/{id}/outcome.json", Outcome)
    return outcome is not None and outcome.state is JobState.FAILED and outcome.attempt == 0


def _count(store: SimulatedStore, id: str, ending: str) -> int:
    """Attempts at a job, or returns of attempts."""
    return sum(name.partition(".")[2] == ending for name in store.below(f"jobs/{id}/attempts"))


def simulate(seed: int, odds: Odds = Odds()) -> Run:  # noqa: B008 - a tuple
    """The run of a seed."""
    return Simulation(seed, odds).run()
