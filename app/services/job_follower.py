"""Following jobs from an event loop: however many clients listen to a job, it is read once."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from storage.errors import RedisUnavailable
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.recent import LastUsed
from storage.records import Job, JobState, Progress
from storage.repositories.jobs import Jobs

_STORE_SECONDS = 2.0
_FIRST_SECONDS = 0.01
_MAX_READ = 10_000


def add_progress(jobs: Iterable[Job], redis_state: RedisState, queue: Queue) -> None:
    """Fill in the reason of waiting of queued jobs, and the progress of running ones.

    When Redis does not answer for one, it is not asked for the others: each would wait for the time-out.
    """
    with suppress(RedisUnavailable):
        for job in jobs:
            if job.state is JobState.QUEUED:
                job.progress = Progress(phase=queue.turns(job.request.id).waiting_for(job.request.id))
            elif not job.state.final:
                job.progress = redis_state.progress(job.request.id) or Progress(phase="starting")


class _Read(NamedTuple):
    """A job as it was read from the store."""

    job: Job
    changes: int | None
    """number of changes that Redis knew then; None if it did not answer"""
    at: float


class JobReader:
    """Reads jobs that are followed: from the store when Redis says that a record has come, else every two seconds; from
    Redis each time.

    So a job that is followed costs the store, which may be a bucket, few calls.
    """

    def __init__(
        self, jobs: Jobs, redis_state: RedisState, queue: Queue, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._jobs = jobs
        self._redis_state = redis_state
        self._queue = queue
        self._clock = clock
        self._read: LastUsed[_Read] = LastUsed(_MAX_READ)

    def now(self, id: str) -> Job:
        """The job with its progress as far as Redis has it; raises NotFound."""
        changes: int | None = None
        with suppress(RedisUnavailable):
            changes = self._redis_state.changes(id)
        read = self._read.find(id)
        if read is None or read.changes != changes or self._clock() - read.at >= _STORE_SECONDS:
            read = self._read.keep(id, _Read(self._jobs.get(id), changes, self._clock()))
        job = read.job.model_copy()
        add_progress([job], self._redis_state, self._queue)
        return job


@dataclass
class _Channel:
    """A job that has listeners."""

    task: "asyncio.Task[None] | None" = None
    listeners: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    job: Job | None = None
    error: BaseException | None = None

    def publish(self, job: Job | None, error: BaseException | None = None) -> None:
        """Wake every listener for a new state of the job, or an error."""
        self.job, self.error = job, error
        self.changed.set()
        self.changed = asyncio.Event()


class JobFollower:
    """Jobs that have listeners, in one event loop.

    ``read_job`` blocks and is called in a thread of ``executor``, every ``seconds`` for each job; in the beginning more
    often, since a tiny job ends within a tenth of a second.
    """

    def __init__(self, read_job: Callable[[str], Job], seconds: float = 0.25, executor: Executor | None = None) -> None:
        self._read_job = read_job
        self._seconds = seconds
        self._executor = executor
        self._channels: dict[str, _Channel] = {}

    @property
    def listeners(self) -> int:
        """Number of clients that follow a job now."""
        return sum(channel.listeners for channel in list(self._channels.values()))

    async def follow(self, id: str) -> AsyncGenerator[Job, None]:
        """The job now, then whenever its state or progress has changed, until it is final.

        Raises NotFound, StoreUnavailable.
        """
        channel = self._channels.setdefault(id, _Channel())
        channel.listeners += 1
        if channel.task is None:
            channel.task = asyncio.create_task(self._poll(id, channel))
        last: Job | None = None
        try:
            while last is None or not last.state.final:
                changed = channel.changed
                if channel.error is not None:
                    raise channel.error
                if channel.job is not None and channel.job != last:
                    last = channel.job
                    yield last
                else:
                    await changed.wait()
        finally:
            channel.listeners -= 1
            if channel.listeners == 0:
                channel.task.cancel()
                if self._channels.get(id) is channel:
                    del self._channels[id]

    async def _poll(self, id: str, channel: _Channel) -> None:
        for number in count(1):
            try:
                job = await asyncio.get_running_loop().run_in_executor(self._executor, self._read_job, id)
            except Exception as error:
                channel.publish(None, error)
                return
            if job != channel.job:
                channel.publish(job)
            if job.state.final:
                return
            await asyncio.sleep(min(self._seconds, number * _FIRST_SECONDS))
