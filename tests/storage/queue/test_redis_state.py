"""Progress, traces, cancel flags, outcomes and heartbeats of workers, in a real Valkey; without it, errors by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from storage.errors import RedisUnavailable
from storage.queue.connection import connect
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.records import Progress
from tests.stores import Valkey
from tests.waiting import HANG, until


def test_progress_and_trace(redis: Redis) -> None:
    redis_state = RedisState(redis)
    assert redis_state.progress("j") is None
    assert redis_state.trace("j") == []
    progress = Progress(fraction=0.5, phase="anneal=2/mfn", iteration=3, objective=0.25)
    redis_state.publish_progress(
        "j", progress, [{"iteration": 1, "objective": None}, {"iteration": 2, "objective": 0.5}]
    )
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
    redis_state.record_heartbeat("b", 0.05)
    until(lambda: redis_state.workers() == ["a"])
    redis_state.record_heartbeat("c", HANG, starting=True)
    assert (redis_state.workers(), redis_state.starting_workers()) == (["a"], ["c"])
    redis_state.remove_worker("a")
    redis_state.remove_worker("c")
    assert (redis_state.workers(), redis_state.starting_workers()) == ([], [])


def test_outcomes_are_counted_by_algorithm_state_and_time(redis: Redis) -> None:
    redis_state = RedisState(redis)
    assert redis_state.outcome_times() == {}
    for algorithm, state, seconds in (
        ("svm", "succeeded", 0.5),
        ("svm", "succeeded", 20.0),
        ("svm", "failed", 1e6),
        ("da", "cancelled", 5.0),
    ):
        redis_state.count_outcome(algorithm, state, seconds)
    told = redis_state.outcome_times()
    assert set(told) == {("svm", "succeeded"), ("svm", "failed"), ("da", "cancelled")}
    assert told["svm", "succeeded"].seconds == pytest.approx(20.5)
    assert list(told["svm", "succeeded"].within.values()) == [1, 1, 1, 2, 2, 2, 2, 2, 2]
    assert list(told["svm", "failed"].within.values()) == [0] * 8 + [1]
    assert told["da", "cancelled"].within["5"] == 1


@pytest.mark.parametrize("url", ["unix://{}", "unix://:wrong@{}"], ids=["none", "wrong"])
def test_a_password_that_is_missing_or_wrong_is_told(url: str, tmp_path: Path) -> None:
    with Valkey(tmp_path) as server:
        with connect(server.url, HANG) as client:
            client.config_set("requirepass", "right")
        with (
            connect(url.format(server.socket), HANG) as client,
            pytest.raises(RedisUnavailable, match="wants another user or password"),
        ):
            RedisState(client, "q").workers()


CALLS: dict[str, Callable[[RedisState, Queue], Any]] = {
    "progress": lambda state, _: state.progress("j"),
    "publish_progress": lambda state, _: state.publish_progress("j", Progress()),
    "trace": lambda state, _: state.trace("j"),
    "request_cancel": lambda state, _: state.request_cancel("j"),
    "cancel_requested": lambda state, _: state.cancel_requested("j"),
    "workers": lambda state, _: state.workers(),
    "starting_workers": lambda state, _: state.starting_workers(),
    "remove_worker": lambda state, _: state.remove_worker("w"),
    "acquire": lambda state, _: state.leases.acquire("j", 1, "w", 1),
    "renew": lambda state, _: state.leases.renew("j", 1, "w", 1),
    "release": lambda state, _: state.leases.release("j", 1, "w"),
    "held": lambda state, _: state.leases.held("j", 1, HANG),
    "enqueue": lambda _, queue: queue.enqueue("j"),
    "depth": lambda _, queue: queue.depth(),
    "waiting": lambda _, queue: queue.waiting(),
    "turns": lambda _, queue: queue.turns("j"),
    "ping": lambda _, queue: queue.ping(),
}


@pytest.mark.parametrize("call", CALLS)
def test_no_call_is_answered(no_redis: Redis, call: str) -> None:
    with pytest.raises(RedisUnavailable):
        CALLS[call](RedisState(no_redis), Queue(no_redis, "q"))
