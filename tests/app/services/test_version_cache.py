"""Which version a reference names: as the store says, and as last known while it does not answer."""

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from app.services import version_cache
from app.services.version_cache import Resolved, VersionCache
from storage.errors import NotFound, StoreDamaged, StoreUnavailable
from storage.records import Version
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.app.conftest import publish
from tests.waiting import SOON


class Flaky(Models):
    """Models of a store that can be let fail or hang."""

    error: StoreUnavailable | None = None

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.answers = threading.Event()
        self.answers.set()
        self.asked = 0

    def resolve(self, reference: str) -> Version:
        self._wait()
        return super().resolve(reference)

    def version(self, name: str, number: int) -> Version:
        self._wait()
        return super().version(name, number)

    def _wait(self) -> None:
        self.asked += 1
        self.answers.wait(SOON)
        if self.error is not None:
            raise self.error


class World:
    """A cache over a flaky store, with a clock that the test sets."""

    def __init__(self, store: Store, executor: ThreadPoolExecutor, fresh: float = 0.0, patience: float = 0.05) -> None:
        self.models, self.now = Flaky(store), 0.0
        self.cache = VersionCache(self.models, executor, fresh, 60.0, patience=patience, clock=lambda: self.now)

    async def resolve(self, reference: str = "news") -> tuple[int, float | None]:
        found = await self.cache.resolve(reference)
        return found.version.number, found.age

    async def back(self, reference: str = "news") -> Resolved:
        """The cache's answer once it has seen that the store answers again."""
        async with asyncio.timeout(SOON):
            while (found := await self.cache.resolve(reference)).age is not None:
                self.now += 1.0
                await asyncio.sleep(0.01)
        return found


@pytest.fixture
def world(store: Store) -> Iterator[World]:
    publish(store)
    with ThreadPoolExecutor(2) as executor:
        world = World(store, executor)
        yield world
        world.models.answers.set()


def run(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scene())


def test_a_store_that_fails_leaves_what_was_last_known(store: Store, world: World) -> None:
    async def scene() -> None:
        assert await world.resolve() == (1, None)
        world.models.error = StoreUnavailable("no answer")
        world.now = 12.0
        assert await world.resolve() == (1, 12.0)
        assert await world.resolve("news") == (1, 12.0)
        publish(store)
        world.models.error = None
        assert (await world.back()).version.number == 2
        assert await world.resolve() == (2, None)

    run(scene)


def test_a_store_that_hangs_is_waited_for_once(store: Store, world: World) -> None:
    async def scene() -> None:
        assert [await world.resolve(), await world.resolve("news/1")] == [(1, None), (1, None)]
        world.models.answers.clear()
        world.now = 5.0
        assert await world.resolve() == (1, 5.0)
        asked = world.models.asked
        for _ in range(50):
            world.now += 1.0
            assert (await world.resolve())[1] == world.now
            assert await world.resolve("news/1") == (1, None), "what it is called by its number does not change"
        assert world.models.asked <= asked + 1, "one looks at a time, however many are asked"
        publish(store)
        world.models.answers.set()
        assert (await world.back()).version.number == 2

    run(scene)


def test_what_is_in_demand_is_renewed_before_it_is_old(store: Store) -> None:
    async def scene(world: World) -> None:
        assert await world.resolve() == (1, None)
        publish(store)
        world.now = 0.4
        assert await world.resolve() == (1, None)
        assert world.models.asked == 1
        world.models.answers.clear()
        world.now = 0.6
        for _ in range(9):
            assert await world.resolve() == (1, None), "nobody waits for a store that hangs"
        world.models.answers.set()
        async with asyncio.timeout(SOON):
            while await world.resolve() == (1, None):
                await asyncio.sleep(0.01)
        assert world.models.asked == 2, "it is asked once, however many want to know"

    publish(store)
    with ThreadPoolExecutor(2) as executor:
        run(lambda: scene(World(store, executor, fresh=1.0)))


@pytest.mark.parametrize("deleted", [False, True])
def test_what_was_changed_here_is_served_while_the_store_hangs(store: Store, deleted: bool) -> None:
    async def scene(world: World) -> None:
        assert [await world.resolve(), await world.resolve("news/1")] == [(1, None), (1, None)]
        world.cache.refresh("news", deleted=deleted)
        world.models.answers.clear()
        world.now = 1.0
        if deleted:
            with pytest.raises(StoreUnavailable, match=r"not answered for 0\.1 s.* 'news' names is not in memory"):
                await world.resolve()
        else:
            assert [await world.resolve(), await world.resolve("news/1")] == [(1, 1.0), (1, None)]
        world.models.answers.set()
        assert (await world.back()).version.number == 1

    publish(store)
    with ThreadPoolExecutor(2) as executor, pytest.MonkeyPatch.context() as patch:
        patch.setattr(version_cache, "ANSWER_SECONDS", 0.1)
        run(lambda: scene(World(store, executor, fresh=10.0)))


def test_who_is_told_that_a_job_succeeded_is_served_its_version(store: Store) -> None:
    async def scene(world: World) -> None:
        assert await world.resolve() == (1, None)
        made = publish(store)
        assert await world.resolve() == (1, None)
        world.cache.published(Jobs(store).get(made.job))
        world.models.answers.clear()  # a bucket is slower than the patience with one that hangs
        asyncio.get_running_loop().call_later(0.2, world.models.answers.set)
        assert await world.resolve() == (2, None)

    publish(store)
    with ThreadPoolExecutor(2) as executor:
        run(lambda: scene(World(store, executor, fresh=1.0)))


def test_what_is_known_counts_for_so_long(world: World) -> None:
    async def scene() -> None:
        await world.resolve()
        await world.resolve("news/1")
        world.models.error = StoreUnavailable("no answer")
        world.now = 61.0
        with pytest.raises(StoreUnavailable, match="has not answered for 61 s"):
            await world.resolve()
        assert await world.resolve("news/1") == (1, None)

    run(scene)


def test_what_was_never_known_needs_the_store(world: World) -> None:
    async def scene() -> None:
        world.models.error = StoreUnavailable("no answer")
        with pytest.raises(StoreUnavailable, match="no answer"):
            await world.resolve()
        world.models.error = None
        with pytest.raises(NotFound):
            await world.resolve("other")
        assert await world.resolve() == (1, None)

    run(scene)


def test_what_was_deleted_is_known_no_more(store: Store, world: World) -> None:
    async def scene() -> None:
        await world.resolve()
        Models(store).delete("news")
        with pytest.raises(NotFound):
            await world.resolve()
        world.models.error = StoreUnavailable("no answer")
        with pytest.raises(StoreUnavailable):
            await world.resolve()

    run(scene)


def test_what_was_changed_here_is_asked_for_anew(store: Store) -> None:
    publish(store)
    publish(store, "other")

    async def scene(executor: ThreadPoolExecutor) -> None:
        world = World(store, executor, fresh=10.0)
        await world.resolve()
        await world.resolve("other")
        publish(store)
        assert await world.resolve() == (1, None), "for a moment the answer stands"
        world.cache.refresh("news")
        assert await world.resolve() == (2, None)
        world.models.error = StoreUnavailable("no answer")
        world.now = 11.0
        assert (await world.resolve("other"))[0] == 1, "nothing else was forgotten"

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scene(executor))


def test_a_damaged_alias_is_answered_as_last_known(world: World) -> None:
    async def scene() -> None:
        await world.resolve()
        world.models.error = StoreDamaged("models/news/aliases/live.json")
        world.now = 3.0
        assert await world.resolve() == (1, 3.0)
        asked = world.models.asked
        assert await world.resolve() == (1, 3.0)
        assert world.models.asked == asked + 1, "the store is not away, so it is asked"

    run(scene)


@pytest.mark.parametrize("seed", range(4))
def test_no_gateway_answers_by_a_moved_alias_for_longer_than_its_bound(store: Store, seed: int) -> None:
    """Gateways with caches of their own, asked at random moments; in that which moved the alias it is moved at once."""
    publish(store)
    publish(store)
    models, chance, fresh = Models(store), random.Random(seed), 0.25
    models.set_alias("news", "live", 1)

    async def scene(executor: ThreadPoolExecutor) -> None:
        gateways = [World(store, executor, fresh, patience=SOON) for _ in range(3)]
        moved, now, target = -1.0, 0.0, 1
        for _ in range(120):
            now += chance.expovariate(20.0)
            for gateway in gateways:
                gateway.now = now
            if chance.random() < 0.1:
                target, moved = 3 - target, now
                models.set_alias("news", "live", target)
                gateways[0].cache.refresh("news")
            place = chance.randrange(3)
            number, _ = await gateways[place].resolve("news@live")
            assert number == target or (place and now - moved < fresh)

    with ThreadPoolExecutor(1) as executor:
        asyncio.run(scene(executor))
