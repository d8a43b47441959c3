"""A store serves one queue of one Redis, and a queue one store."""

from collections.abc import Callable
from pathlib import Path

import pytest
from redis import Redis

from storage.errors import CannotStart, RedisUnavailable
from storage.store import Store, open_store
from storage.store.json_records import encode, find
from storage.upkeep.binding import FORMAT, Binding, StoreRecord, admit, check_first_writer
from tests.waiting import Clock


class BusyClock(Clock):
    """Waiting takes no time by it; something may happen meanwhile."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._meanwhile = meanwhile

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._meanwhile()


def binding(
    store: Store, redis: Redis, meanwhile: Callable[[], object] = lambda: None, queue: str = "q"
) -> tuple[Binding, BusyClock]:
    clock = BusyClock(meanwhile)
    return Binding(store, admit(store), redis, queue, clock.sleep, clock), clock


def bound(store: Store, redis: Redis, meanwhile: Callable[[], object] = lambda: None, queue: str = "q") -> Binding:
    made, _ = binding(store, redis, meanwhile, queue)
    made.bind()
    assert made.bound
    return made


def test_gateways_of_one_installation_are_bound_at_once(store: Store, redis: Redis) -> None:
    first = bound(store, redis)
    second, clock = binding(store, redis)
    second.bind()
    assert (second.bound, clock.now) == (True, 0.0)
    first.renew()
    second.renew()
    assert first.bound
    assert second.bound


def test_a_second_redis_is_refused_while_a_gateway_uses_the_first(store: Store, redis: Redis) -> None:
    """Another queue of the same server is as good as another server."""
    first = bound(store, redis)
    second, clock = binding(store, redis, first.renew, "other")
    with pytest.raises(CannotStart, match="the store is in use with another Redis"):
        second.bind()
    assert clock.now < 10
    assert not second.bound
    first.renew()
    assert first.bound


def test_a_second_redis_is_taken_when_nobody_uses_the_first(store: Store, redis: Redis) -> None:
    former = bound(store, redis)
    moved = bound(store, redis, queue="other")
    former.renew()
    assert not former.bound, "one that has stood still meanwhile notices"
    with pytest.raises(CannotStart):
        binding(store, redis, moved.renew)[0].bind()


def test_another_store_is_refused_while_a_gateway_uses_the_queue(store: Store, redis: Redis, tmp_path: Path) -> None:
    first, other = bound(store, redis), open_store(f"file://{tmp_path}/other")
    for act in (Binding.bind, Binding.check):
        with pytest.raises(CannotStart, match="in use with another store"):
            act(binding(other, redis, first.renew)[0])
    first.release()
    bound(other, redis)
    first.renew()
    assert not first.bound


def test_what_redis_has_lost_is_written_again(store: Store, redis: Redis) -> None:
    first = bound(store, redis)
    redis.flushall()
    second, _ = binding(store, redis, first.renew)
    second.bind()
    assert first.bound
    assert second.bound


def test_an_emptied_redis_is_taken_after_a_restart(store: Store, redis: Redis) -> None:
    bound(store, redis)
    redis.flushall()
    again, clock = binding(store, redis)
    again.bind()
    assert again.bound
    assert 0 < clock.now < 10


def test_two_that_start_after_a_restart_do_not_refuse_each_other(store: Store, redis: Redis) -> None:
    bound(store, redis)
    redis.flushall()
    others: list[Binding] = []
    first, clock = binding(
        store, redis, lambda: others.append(bound(store, redis)) if clock.now > 5.9 and not others else None
    )
    first.bind()
    assert [first.bound, *(other.bound for other in others)] == [True, True]


def test_without_redis_nothing_is_decided(store: Store, no_redis: Redis) -> None:
    with pytest.raises(RedisUnavailable):
        binding(store, no_redis)[0].bind()


def test_a_store_keeps_its_id(any_store: Store) -> None:
    assert admit(any_store) == admit(any_store)


def test_an_older_store_is_taken_as_it_is_and_a_newer_one_refused(store: Store) -> None:
    store.create("jobs/x", b"of a version without formats")
    id = admit(store)
    store.replace("store.json", encode(StoreRecord(id=id, format=1)))
    assert admit(store) == id
    assert find(store, "store.json", StoreRecord) == StoreRecord(id=id, format=FORMAT), (
        "older releases refuse it from now on"
    )
    store.replace("store.json", f'{{"id":"{id}","format":{FORMAT + 1},"more":[]}}'.encode())
    with pytest.raises(CannotStart, match=f"has format {FORMAT + 1}, which a newer version"):
        admit(store)


def test_a_store_without_conditional_writes_is_refused(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def create(store: Store, key: str, data: bytes) -> bool:
        store.replace(key, data)
        return True

    check_first_writer(any_store)
    assert any_store.children("admission") == []
    monkeypatch.setattr(type(any_store), "create", create)
    for check in (check_first_writer, admit):
        with pytest.raises(CannotStart, match="does not support conditional writes"):
            check(any_store)
