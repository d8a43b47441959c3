"""Leases and claims of documents: taken once, renewed, released, and run out by themselves."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic_ns
from types import SimpleNamespace

import pytest
from redis import Redis

from storage.queue import leases as module
from storage.queue.claims import DocumentClaims
from storage.queue.connection import connect
from storage.queue.leases import Leases
from tests.stores import Valkey
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


@pytest.fixture
def claims(valkey: Valkey) -> Iterator[DocumentClaims]:
    with connect(valkey.url, HANG) as redis:
        yield DocumentClaims(redis, "test")


def test_others_see_what_a_person_has_claimed(claims: DocumentClaims) -> None:
    claims.claim("ds-1", {3, 5}, "ann", 60)
    claims.claim("ds-1", {7}, "bob:x", 60)
    assert claims.of_others("ds-1", "ann") == {7}
    assert claims.of_others("ds-1", "bob:x") == {3, 5}
    assert claims.of_others("ds-2", "cleo") == set()
    assert claims.claim("ds-1", [], "cleo", 60) == set()


def test_what_others_have_is_told_and_not_claimed(claims: DocumentClaims) -> None:
    assert claims.claim("ds-1", [3, 5], "ann", 60) == set()
    assert claims.claim("ds-1", [5, 7], "bob:x", 60) == {5}
    assert claims.claim("ds-1", [3, 5, 7], "ann", 60) == {7}
    assert claims.of_others("ds-1", "cleo") == {3, 5, 7}


def test_of_many_who_claim_at_once_one_gets_each_document(claims: DocumentClaims) -> None:
    positions = set(range(50))
    with ThreadPoolExecutor(8) as pool:
        got = [
            positions - lost
            for lost in pool.map(lambda person: claims.claim("ds-1", positions, f"p{person}", 60), range(8))
        ]
    assert sorted(position for each in got for position in each) == sorted(positions)


def test_claims_end_by_themselves(claims: DocumentClaims) -> None:
    claims.claim("ds-1", {3}, "ann", 1)
    until(lambda: claims.of_others("ds-1", "bob") == set())
    assert claims.claim("ds-1", {3}, "bob", 60) == set()
