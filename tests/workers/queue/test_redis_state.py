"""Progress, leases, heartbeats and the queue, in a real Valkey."""

import json
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import rq
from redis import Redis
from rq.serializers import JSONSerializer

from tests.waiting import HANG, until
from tests.workers.conftest import Valkey
from workers.contract import Progress
from workers.errors import QueueUnavailable, RedisStateUnavailable
from workers.names import new_id
from workers.queue.connect import connect
from workers.queue.queue import Queue
from workers.queue.redis_state import RedisState


def test_progress_and_trace(redis: Redis) -> None:
    redis_state = RedisState(redis)
    assert redis_state.progress("j") is None
    assert redis_state.trace("j") == []
    progress = Progress(fraction=0.5, phase="anneal=2/mfn", iteration=3, objective=0.25)
    redis_state.publish_progress("j", progress, [{"iteration": 1, "objective": None}, {"iteration": 2, "objective": 0.5}])
    redis_state.publish_progress("j", progress, [{"iteration": 3, "objective": 0.25}])
    assert redis_state.progress("j") == progress
    assert [point["iteration"] for point in redis_state.trace("j")] == [1, 2, 3]
    assert redis_state.progress("other") is None
    redis_state.clear_progress("j")
    assert (redis_state.progress("j"), redis_state.trace("j")) == (None, [])


def test_everything_expires(redis: Redis) -> None:
    redis_state = RedisState(redis)
    redis_state.publish_progress("j", Progress(), [{"iteration": 1}])
    redis_state.request_cancel("j")
    redis_state.leases.renew("j", 1, "w", HANG)
    for key in redis.keys("*"):
        assert redis.ttl(key) > 0, key


def test_a_lease_is_taken_once_and_runs_out(redis: Redis) -> None:
    redis_state = RedisState(redis)
    assert redis_state.leases.acquire("j", 1, "a", HANG)
    assert not redis_state.leases.acquire("j", 1, "b", HANG)
    assert redis_state.leases.acquire("j", 2, "b", HANG)
    redis_state.leases.renew("j", 1, "a", 10 * HANG)
    redis_state.leases.renew("j", 2, "b", 0.05)
    until(lambda: not redis_state.leases.held("j", 2))
    assert redis_state.leases.held("j", 1)
    (key,) = redis.keys("*")
    assert redis.ttl(key) > HANG, "it was renewed for as long as was said last"
    redis_state.leases.release("j", 1)
    assert not redis_state.leases.held("j", 1)


def test_cancels(redis: Redis) -> None:
    redis_state = RedisState(redis)
    assert not redis_state.cancel_requested("j")
    redis_state.request_cancel("j")
    assert redis_state.cancel_requested("j")
    assert not redis_state.cancel_requested("k")


def test_namespaces_are_apart(redis: Redis) -> None:
    RedisState(redis, "one").request_cancel("j")
    assert not RedisState(redis, "two").cancel_requested("j")


def test_dead_workers_are_not_counted_for_long(redis: Redis) -> None:
    redis_state = RedisState(redis, "q")
    redis_state.record_heartbeat("a", 2 * HANG)
    redis_state.record_heartbeat("b", HANG)
    assert redis_state.workers() == ["b", "a"]
    assert Queue(redis, "q").workers() == 2
    redis_state.record_heartbeat("b", 0.05)
    until(lambda: redis_state.workers() == ["a"])
    redis_state.record_heartbeat("c", HANG, starting=True)
    assert (Queue(redis, "q").workers(), Queue(redis, "q").starting_workers()) == (1, 1)
    redis_state.remove_worker("a")
    redis_state.remove_worker("c")
    assert (Queue(redis, "q").workers(), Queue(redis, "q").starting_workers()) == (0, 0)


def test_the_queue_carries_ids_as_json(redis: Redis) -> None:
    queue = Queue(redis, "q")
    queue.ping()
    assert (queue.depth(), queue.waiting()) == (0, set())
    queue.enqueue("job-1")
    queue.enqueue("job-2")
    assert (queue.depth(), queue.waiting()) == (2, {"job-1", "job-2"})
    source = rq.Queue("q", connection=redis, serializer=JSONSerializer)
    job, _ = rq.Queue.dequeue_any([source], None, redis, serializer=JSONSerializer) or (None, None)
    assert job is not None
    assert (job.func_name, tuple(job.args)) == ("workers.worker.tasks.train", ("job-1",))
    assert json.loads(zlib.decompress(cast("bytes", redis.hget(job.key, "data"))))[0] == "workers.worker.tasks.train"
    assert queue.waiting() == {"job-2"}


CALLS_OF_STATE: dict[str, Callable[[RedisState], Any]] = {
    "progress": lambda redis_state: redis_state.progress("j"),
    "publish_progress": lambda redis_state: redis_state.publish_progress("j", Progress()),
    "trace": lambda redis_state: redis_state.trace("j"),
    "request_cancel": lambda redis_state: redis_state.request_cancel("j"),
    "cancel_requested": lambda redis_state: redis_state.cancel_requested("j"),
    "acquire": lambda redis_state: redis_state.leases.acquire("j", 1, "w", 1),
    "renew": lambda redis_state: redis_state.leases.renew("j", 1, "w", 1),
    "held": lambda redis_state: redis_state.leases.held("j", 1),
    "workers": lambda redis_state: redis_state.workers(),
    "starting_workers": lambda redis_state: redis_state.starting_workers(),
    "remove_worker": lambda redis_state: redis_state.remove_worker("w"),
}
QUEUE: dict[str, Callable[[Queue], Any]] = {
    "enqueue": lambda queue: queue.enqueue("j"),
    "depth": lambda queue: queue.depth(),
    "waiting": lambda queue: queue.waiting(),
    "workers": lambda queue: queue.workers(),
    "starting_workers": lambda queue: queue.starting_workers(),
    "turns": lambda queue: queue.turns("j"),
    "ping": lambda queue: queue.ping(),
}


@pytest.mark.parametrize("call", CALLS_OF_STATE)
def test_live_without_redis(no_redis: Redis, call: str) -> None:
    with pytest.raises(RedisStateUnavailable):
        CALLS_OF_STATE[call](RedisState(no_redis))


@pytest.mark.parametrize("call", QUEUE)
def test_queue_without_redis(no_redis: Redis, call: str) -> None:
    with pytest.raises(QueueUnavailable):
        QUEUE[call](Queue(no_redis, "q"))


def test_endings_are_counted_by_algorithm_state_and_time(redis: Redis) -> None:
    redis_state = RedisState(redis)
    assert redis_state.outcome_times() == {}
    for algorithm, state, seconds in (("svm", "succeeded", 0.5), ("svm", "succeeded", 20.0), ("svm", "failed", 1e6), ("da", "cancelled", 5.0)):
        redis_state.count_outcome(algorithm, state, seconds)
    told = redis_state.outcome_times()
    assert set(told) == {("svm", "succeeded"), ("svm", "failed"), ("da", "cancelled")}
    assert told["svm", "succeeded"].seconds == pytest.approx(20.5)
    assert list(told["svm", "succeeded"].within.values()) == [1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert list(told["svm", "failed"].within.values()) == [0] * 8 + [1]
    assert told["da", "cancelled"].within["5"] == 1


def test_how_long_the_oldest_has_waited(redis: Redis) -> None:
    queue = Queue(redis, "halfmoon")
    assert queue.age() == 0.0
    queue.enqueue("job-" + "0" * 24)
    queue.enqueue(new_id("job"))
    assert queue.age() == pytest.approx(time.time(), rel=1e-3)


def test_a_redis_that_takes_no_writes_does_not_answer(redis: Redis) -> None:
    queue = Queue(redis, "halfmoon")
    queue.ping()
    redis.config_set("min-replicas-to-write", 1)
    try:
        assert redis.ping()
        with pytest.raises(QueueUnavailable):
            queue.ping()
    finally:
        redis.config_set("min-replicas-to-write", 0)


@pytest.mark.parametrize("url", ["unix://{}", "unix://:wrong@{}"], ids=["none", "wrong"])
def test_a_password_that_is_missing_or_wrong_is_told(url: str, tmp_path: Path) -> None:
    server = Valkey(tmp_path)
    server.start()
    try:
        with connect(server.url, HANG) as client:
            client.config_set("requirepass", "right")
        with (
            connect(url.format(server.socket), HANG) as client,
            pytest.raises(RedisStateUnavailable, match="wants another user or password"),
        ):
            RedisState(client, "q").workers()
    finally:
        server.kill()
