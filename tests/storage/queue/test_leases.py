"""Leases: taken once, renewed, released, and run out by themselves."""

from time import monotonic_ns
from types import SimpleNamespace

import pytest
from redis import Redis

from storage.queue import redis_state as module
from storage.queue.redis_state import Leases
from tests.waiting import HANG, until


def test_a_lease_is_taken_once_and_runs_out(redis: Redis) -> None:
    leases = Leases(redis, "q")
    assert leases.acquire("j", 1, "a", HANG)
    assert not leases.acquire("j", 1, "b", HANG)
    assert leases.acquire("j", 2, "b", HANG)
    leases.renew("j", 1, "a", 10 * HANG)
    leases.renew("j", 2, "b", 0.05)
    until(lambda: not leases.held("j", 2, HANG))
    assert leases.held("j", 1, HANG)
    (key,) = redis.keys("*")
    assert redis.ttl(key) > HANG, "it was renewed for as long as was said last"
    leases.release("j", 1, "b")
    assert leases.held("j", 1, HANG), "only its holder gives it back"
    leases.release("j", 1, "a")
    assert not leases.held("j", 1, HANG)
    assert leases.acquire("j", 1, "b", HANG)
    leases.revoke("j", 1)
    assert not leases.held("j", 1, HANG)


def test_a_lease_that_changes_no_more_is_not_held(redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key stays for a day where the clock of Redis was set back by a day."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now, monotonic_ns=monotonic_ns))
    leases, reader = Leases(redis, "q"), Leases(redis, "q")
    leases.acquire("j", 1, "a", 90_000.0)
    assert reader.held("j", 1, 3.0)
    for clock.now in (3.0, 5.0, 7.0):
        assert reader.held("j", 1, 3.0)
        leases.renew("j", 1, "a", 90_000.0)
    clock.now = 10.1
    assert reader.held("j", 1, 3.0), "it has changed since it was looked at"
    clock.now = 13.2
    assert not reader.held("j", 1, 3.0)
    assert Leases(redis, "q").held("j", 1, 3.0), "another reader sees it for the first time"
    leases.renew("j", 1, "a", 90_000.0)
    assert reader.held("j", 1, 3.0)
