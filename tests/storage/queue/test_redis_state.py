"""Progress, traces, cancel flags, outcomes and heartbeats of workers, in a real Valkey."""

import pytest
from redis import Redis

from storage.queue.redis_state import RedisState
from storage.records import Progress
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
