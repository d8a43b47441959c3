"""Leases: taken once, renewed, released, and run out by themselves."""

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from storage.errors import RedisStateUnavailable
from storage.queue.leases import Leases
from tests.waiting import HANG, until


def test_a_lease_is_taken_once_and_runs_out(redis: Redis) -> None:
    leases = Leases(redis, "q")
    assert leases.acquire("j", 1, "a", HANG)
    assert not leases.acquire("j", 1, "b", HANG)
    assert leases.acquire("j", 2, "b", HANG)
    leases.renew("j", 1, "a", 10 * HANG)
    leases.renew("j", 2, "b", 0.05)
    until(lambda: not leases.held("j", 2))
    assert leases.held("j", 1)
    (key,) = redis.keys("*")
    assert redis.ttl(key) > HANG, "it was renewed for as long as was said last"
    leases.release("j", 1, "b")
    assert leases.held("j", 1), "only its holder gives it back"
    leases.release("j", 1, "a")
    assert not leases.held("j", 1)
    assert leases.acquire("j", 1, "b", HANG)
    leases.revoke("j", 1)
    assert not leases.held("j", 1)


CALLS: dict[str, Callable[[Leases], Any]] = {
    "acquire": lambda leases: leases.acquire("j", 1, "w", 1),
    "renew": lambda leases: leases.renew("j", 1, "w", 1),
    "release": lambda leases: leases.release("j", 1, "w"),
    "held": lambda leases: leases.held("j", 1),
}


@pytest.mark.parametrize("call", CALLS)
def test_leases_without_redis(no_redis: Redis, call: str) -> None:
    with pytest.raises(RedisStateUnavailable):
        CALLS[call](Leases(no_redis, "q"))
