"""Which messages of the queue a worker runs: those that name its one task, and nothing else that a message of RQ may
name.
"""

import json
import threading
from typing import Any

import pytest
from redis import Redis
from rq.serializers import JSONSerializer

from storage.names import new_id
from storage.queue.connection import connect
from storage.queue.ordered_queue import OrderedQueue
from storage.queue.queue import TASK
from storage.records import SIZES
from storage.store import forks
from tests.stores import Valkey
from workers.worker import tasks
from workers.worker.tasks import ForeignMessage, Message, RQWorker

CALLBACKS = ("success_callback_name", "failure_callback_name", "stopped_callback_name")


@pytest.fixture
def redis(valkey: Valkey) -> Redis:
    return connect(valkey.url, 10.0)


def message(redis: Redis, *data: Any, **fields: str) -> Message:
    """A worker's reading of a message that lies in Redis with these data."""
    for field, value in {"created_at": "2026-01-01T00:00:00.000000Z", "data": json.dumps(data), **fields}.items():
        redis.hset("rq:job:m", field, value)
    found = Message.fetch("m", connection=redis, serializer=JSONSerializer)
    assert isinstance(found, Message)
    return found


def test_the_task_is_run(redis: Redis) -> None:
    assert message(redis, TASK, None, [new_id("job")], {}).func is tasks.train


@pytest.mark.parametrize(
    "data",
    [
        ("os.system", None, ["true"], {}),
        ("workers.worker.tasks.train.__globals__", None, [new_id("job")], {}),
        ("subprocess.call", None, [["true"]], {}),
        ("train", "workers.worker.tasks", [new_id("job")], {}),
        (None, None, [new_id("job")], {}),
        (TASK, None, [], {}),
        (TASK, None, ["../../etc"], {}),
        (TASK, None, [new_id("job"), 1], {}),
        (TASK, None, 5, {}),
        (TASK, None, [new_id("job")], {"job_id": new_id("job")}),
    ],
)
def test_nothing_else_is_run(redis: Redis, data: tuple[Any, ...]) -> None:
    found = message(redis, *data)
    with pytest.raises(ForeignMessage):
        found.perform()


def test_neither_callbacks_nor_webhooks_are_run(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rq.webhook.Webhook.send", lambda *_, **__: pytest.fail("a webhook was sent"))
    webhooks = json.dumps([{"url": "http://127.0.0.1:9/", "job_status": "finished"}])
    found = message(redis, TASK, None, [new_id("job")], {}, webhooks=webhooks, **dict.fromkeys(CALLBACKS, "os.getpid"))
    assert (found.success_callback, found.failure_callback, found.stopped_callback) == (None, None, None)
    assert found.webhooks
    found.send_webhooks("finished")


def test_a_signal_that_came_before_the_worker_listened_ends_it(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that comes while kernels are loaded."""
    monkeypatch.setattr(forks, "_user", None)  # other tests of this process may have used a bucket
    monkeypatch.setattr("signal.signal", lambda *_: None)
    worker = RQWorker(OrderedQueue("q", redis, SIZES), "w", redis, drain_seconds=1.0, killed=lambda *_: None)
    told = threading.Event()
    told.set()
    assert worker.run(told)
