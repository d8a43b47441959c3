"""A worker process: loads the kernels, takes jobs from the queue, and runs each in a child process of its own. Its
memory and processors are what its cgroup allows.
"""

import math
import os
import secrets
import signal
import socket
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

import structlog

from core.errors import HalfmoonError
from core.threads import available_processors
from storage.errors import RedisUnavailable, Unavailable
from storage.process.background import BackgroundThread
from storage.process.logs import configure_logging
from storage.process.settings import Settings
from storage.process.tracing import load, wanted
from storage.queue.connection import connect, redis_error_text
from storage.queue.ordered_queue import OrderedQueue
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.repositories.job_attempts import Death
from storage.repositories.jobs import Jobs
from storage.store import Store, open_store
from storage.store.forks import run_in_store_process
from storage.upkeep.binding import Binding, admit
from workers.cluster.address import ClusterAddress
from workers.encoders.catalogue import Encoders
from workers.worker.context import WorkerContext
from workers.worker.tasks import RQWorker, worker_context

_FIRST_BACKOFF_SECONDS = 0.2
_LONGEST_BACKOFF_SECONDS = 5.0
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def run_worker(settings: Settings, *, warmed: bool = False, replaces: int | None = None) -> int:
    """Work until SIGTERM or SIGINT, and return the exit code. Redis may be away at the start and later.

    ``warmed``: the kernels are loaded already. ``replaces``: process id of a worker of this machine that has died; its
    job is enqueued again. Raises CannotStart when the kernels cannot be compiled, or the store must not be used.
    """
    configure_logging(settings.log_format, settings.log_level)
    name = worker_name(os.getpid(), secrets.token_hex(4))
    context = _context(settings, name)
    context.store.remove_abandoned()
    worker_context.set(context)
    # one for all of the start: a signal that comes while kernels are loaded counts as well
    stop = threading.Event()
    _stop_on_signals(stop)
    if not _await_admission(settings, context.store, stop):
        return 0
    if not warmed:
        with _WorkerHeartbeat(settings, name, starting=True):
            # Numba takes a second to load; the children, which are forked, share the kernels
            from workers.worker.warm_up import warm_up

            warm_up()
    context.encoders.prepare()
    with _WorkerHeartbeat(settings, name):
        if replaces is not None:
            with suppress(Unavailable):  # a gateway enqueues the jobs when their leases have run out
                run_in_store_process(partial(_requeue_jobs_of, context, worker_name(replaces, "")))
        _log.info("worker is ready", worker=name, queue=settings.queue)
        _work(settings, context, stop)
    _log.info("worker has stopped", worker=name)
    return 0


def worker_name(process: int, suffix: str) -> str:
    """Name of a worker: the machine, the process id, and a suffix that makes it unique."""
    return f"{socket.gethostname()}.{process}.{suffix}"


def _work(settings: Settings, context: WorkerContext, stop: threading.Event) -> None:
    """Run one worker of RQ after the other: one that has lost Redis cannot be used again.

    The delay between two doubles (back-off).
    """
    backoff = _FIRST_BACKOFF_SECONDS
    while not stop.is_set():
        _stop_on_signals(stop)
        try:
            # RQ waits for messages in blocking calls, so it has a connection of its own, with other time-outs
            redis = connect(settings.redis_url, settings.redis_timeout_seconds)
            # RQ refuses the name of a worker that it has not seen exit
            name = f"{context.worker}.{secrets.token_hex(2)}"
            queue = OrderedQueue(settings.queue, redis, settings.job_sizes)
            rq_worker = RQWorker(
                queue,
                name,
                redis,
                drain_seconds=settings.drain_seconds,
                killed=partial(_recover_in_store_process, context),
            )
        except Exception as error:
            _log.warning("Redis does not answer", error=redis_error_text(error), retry_in=backoff)
        else:
            if rq_worker.run(stop):
                return
            backoff = _FIRST_BACKOFF_SECONDS
        _stop_on_signals(stop)
        stop.wait(backoff)
        backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)


def _stop_on_signals(stop: threading.Event) -> None:
    """Between two workers of RQ, a signal ends the waiting."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


def _await_admission(settings: Settings, store: Store, stop: threading.Event) -> bool:
    """Wait until store and Redis answer, and the store may be used with this queue; false when told to stop before.

    Raises CannotStart if the store must not be used.
    """
    backoff = _FIRST_BACKOFF_SECONDS
    while not stop.is_set():
        try:
            run_in_store_process(partial(_check, settings, store))
            return True
        except Unavailable as error:
            _log.warning("waiting for store and Redis", error=str(error), retry_in=backoff)
        stop.wait(backoff)
        backoff = min(2 * backoff, _LONGEST_BACKOFF_SECONDS)
    return False


def _check(settings: Settings, store: Store) -> None:
    with connect(settings.redis_url, settings.redis_timeout_seconds) as redis:
        Binding(store, admit(store), redis, settings.queue).check()


def _requeue_jobs_of(context: WorkerContext, dead: str) -> None:
    """Enqueue the jobs of a dead worker again (its name begins with ``dead``): its children died with it."""
    jobs = Jobs(context.store)
    try:
        for job_id, attempt in jobs.attempts_of(dead):
            _log.info("the job of a dead worker is enqueued again", job=job_id, attempt=attempt)
            context.reconciler().retry_now(job_id, attempt)
    except HalfmoonError as error:
        _log.warning("a dead worker's job waits for a gateway to enqueue it again", worker=dead, error=str(error))


def _recover_in_store_process(context: WorkerContext, job_id: str, death: Death) -> None:
    with suppress(Unavailable):  # a gateway enqueues the job when its lease has run out
        run_in_store_process(partial(_recover, context, job_id, death))


def _recover(context: WorkerContext, job_id: str, death: Death) -> None:
    """Enqueue a job again after its child was killed, at once instead of when its lease has run out."""
    jobs, reconciler = Jobs(context.store), context.reconciler()
    try:
        job = jobs.get(job_id)
        if job.attempt:
            jobs.record_death(job_id, job.attempt, death)
        reconciler.retry_now(job_id, job.attempt)
        context.store.remove_abandoned()
    except HalfmoonError as error:
        _log.warning("a killed job waits for a gateway to enqueue it again", job=job_id, error=str(error))


def _context(settings: Settings, name: str) -> WorkerContext:
    traced = wanted()
    if traced:
        load()
    redis = connect(settings.redis_url, settings.redis_timeout_seconds)
    return WorkerContext(
        settings=settings,
        store=open_store(settings.store_url, settings.cache_dir, cache_bytes=settings.cache_bytes),
        redis_state=RedisState(redis, settings.queue),
        queue=Queue(redis, settings.queue, settings.job_timeout_seconds),
        worker=name,
        threads=settings.training_threads or usable_processors(),
        max_job_bytes=settings.max_job_memory_bytes or memory_limit(),
        worker_pid=os.getpid(),
        encoders=Encoders.of(settings, settings.training_threads or usable_processors()),
        cluster=ClusterAddress.of(settings),
        traced=traced,
    )


class _WorkerHeartbeat(BackgroundThread):
    """Heartbeat of this worker in Redis.

    Its connection is its own: at a fork the thread may hold the lock of its connections, for which the child would wait
    for ever.
    """

    def __init__(self, settings: Settings, name: str, *, starting: bool = False) -> None:
        super().__init__("worker heartbeat")
        self._redis = connect(settings.redis_url, settings.redis_timeout_seconds)
        self._redis_state = RedisState(self._redis, settings.queue)
        self._starting = starting
        self._name = name
        self._seconds, self._sizes = settings.lease_seconds, settings.job_sizes

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        with suppress(RedisUnavailable):
            self._redis_state.remove_worker(self._name)
        self._redis.close()

    def _run(self) -> None:
        while not self._done.is_set():
            with suppress(RedisUnavailable):
                self._redis_state.record_heartbeat(
                    self._name, self._seconds, starting=self._starting, sizes=self._sizes
                )
            self._done.wait(self._seconds / 4)


_CGROUP = Path("/sys/fs/cgroup")


def memory_limit(cgroup: Path = _CGROUP) -> int:
    """Bytes that this process may use."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = (_limit(cgroup / name) for name in ("memory.max", "memory/memory.limit_in_bytes"))
    return min([machine, *(limit for limit in limits if limit is not None)])


def _limit(path: Path) -> int | None:
    """The number in a file of the cgroup; None if there is no such file, or no limit (``max``)."""
    words = _words(path)
    return int(words[0]) if words and words[0].isdecimal() else None


def usable_processors(cgroup: Path = _CGROUP) -> int:
    """Number of processors, at least one.

    A part of one counts as a whole: so many threads are slowed down, one fewer would leave a part unused.
    """
    available, quota = available_processors(), _quota(cgroup)
    return available if quota is None else max(1, min(available, quota))


def _quota(cgroup: Path) -> int | None:
    """Processors by the quota, None if there is none."""
    former = (cgroup / "cpu" / name for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    match _words(cgroup / "cpu.max") or [word for path in former for word in _words(path)]:
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(quota) and int(period):
            return math.ceil(int(quota) / int(period))
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []
