"""Fakes for the tests of attempts: a training with an end that the test decides."""

import os
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from redis import Redis

from core.models.model import LinearModel
from core.problem import Status
from core.progress import Observer, Phase, TracePoint
from core.train import Training
from storage.process.settings import Settings
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.store import Store
from tests.stores import submit
from tests.waiting import HANG, SLOW, until
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext

Faked = Callable[[Observer], Training]


def make_context(
    store: Store, redis: Redis, worker: str = "w", job_timeout_seconds: float = 10 * HANG
) -> WorkerContext:
    return WorkerContext(
        Settings(lease_seconds=HANG, job_timeout_seconds=job_timeout_seconds, store_retry_seconds=0.0),
        store,
        RedisState(redis, "q"),
        Queue(redis, "q"),
        worker,
        threads=1,
        max_job_bytes=2**34,
        worker_pid=os.getpid(),
    )


def with_settings(context: WorkerContext, **settings: Any) -> WorkerContext:
    return context._replace(settings=context.settings.model_copy(update=settings))


def trained(status: Status = Status.CONVERGED) -> Training:
    model = LinearModel(["no", "yes"], 21, np.arange(21, dtype=np.uint32), np.zeros((21, 1)), np.zeros(1))
    unlabeled = np.arange(6, 60)
    point = TracePoint(Phase("mfn"), 1, 0.5, float("nan"), 1.0, 0.1)
    return Training(
        model, unlabeled, np.linspace(-1, 1, len(unlabeled))[:, None], None, 0.5, status, ["a warning"], [point], 1.0
    )


def work_until(done: Callable[[], object]) -> Faked:
    """A solver that reports every 20 ms until it is stopped, or ``done`` says that it has converged; it fails if
    neither ever comes.
    """

    def work(observer: Observer) -> Training:
        start = time.monotonic()
        for iteration in count(1):
            if observer(TracePoint(Phase("mfn"), iteration, 0.5, 0.5, 0.3, time.monotonic() - start)):
                return trained(Status.CANCELLED)
            if done():
                return trained()
            assert time.monotonic() - start < SLOW, "it is not stopped"
            time.sleep(0.02)
        raise AssertionError

    return work


work_until_stopped = work_until(lambda: False)


def attempted(store: Store, context: WorkerContext, **job: Any) -> str:
    """The id of a new job, after one attempt at it."""
    id = submit(store, **job)
    Attempts(context).run(id)
    return id


def in_thread(act: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def begun(context: WorkerContext, id: str, attempts: Attempts | None = None) -> threading.Thread:
    """The thread that runs an attempt at a job, which has told of its progress."""
    thread = in_thread(lambda: (attempts or Attempts(context)).run(id))
    until(lambda: context.redis_state.progress(id))
    return thread


TOPICS = (["goal", "keeper", "match", "league", "referee"], ["vote", "senate", "minister", "party", "treaty"])


def texts(n: int = 80, seed: int = 0, extra: str = "") -> list[str]:
    """Texts of two topics by turns, in words of their own and of both."""
    generator = np.random.default_rng(seed)
    return [
        " ".join([*generator.choice(TOPICS[place % 2], 4), "the", extra, str(generator.choice(["late", "early"]))])
        for place in range(n)
    ]
