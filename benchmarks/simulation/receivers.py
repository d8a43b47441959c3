"""Receivers of webhooks, one of them slow, and gateways that deliver to them."""

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from app.services.webhooks import delivery
from app.services.webhooks.delivery import Delivery
from app.services.webhooks.sender import SendFailed
from benchmarks.simulation.outside import SimulatedStore
from benchmarks.simulation.world import World
from storage.errors import Unavailable
from storage.names import new_id
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.repositories.webhooks import EVENTS, Webhook, Webhooks
from storage.store import json_records

_SLOW_SECONDS = 8.0
_REFUSED_SHARE = 0.2
_DELAYS = (1, 2, 4, 8, 8, 8, 8, 8, 8)
"""Seconds between tries, in place of days."""


class Receivers:
    """A fast receiver and a slow one; both refuse now and then, until the world is calm."""

    def __init__(self, world: World, store: Any) -> None:
        self._world, self._store = world, store
        self._seconds: dict[str, float] = {}
        self.told: set[tuple[str, str]] = set()
        """Address and message, for each that came."""

    def register(self) -> None:
        """Before the storm."""
        for url, seconds in (("https://fast.example/", 0.1), ("https://slow.example/", _SLOW_SECONDS)):
            self._seconds[url] = seconds
            hook = Webhook(id=new_id("webhook"), url=url, events=EVENTS, secret="", created_at=datetime.now(UTC))
            self._store.content[f"webhooks/{hook.id}.json"] = json_records.encode(hook)

    def deliver(self, process: str) -> None:
        """Deliver as a gateway does once a second."""
        world = self._world
        sender: Any = self
        own = Delivery(
            Webhooks(self._store), Jobs(self._store), Models(self._store), sender, lambda: world.wall, lambda: world.now
        )
        own.close()
        threads: Any = _Actors(world, process)
        own._threads = threads
        while True:
            with suppress(Unavailable):
                own.deliver()
            world.rest(1.0)

    def send(self, url: str, secret: str, id: str, body: bytes, timestamp: int) -> None:
        """See Sender."""
        self._world.sleep(self._world.random.uniform(0.0, self._seconds[url]))
        if not self._world.calm and self._world.random.random() < _REFUSED_SHARE:
            raise SendFailed("the answer was 500", 500)
        self._world.call(f"send {id}", lambda: self.told.add((url, id)), lambda: SendFailed("no answer"))

    def violations(self, store: SimulatedStore, jobs: Collection[str]) -> Iterator[str]:
        """A sentence for each receiver that was not told of the end of one of these jobs."""
        for url in self._seconds:
            missing = sorted(job for job in jobs if (url, f"{job}.job.ended") not in self.told)
            yield from (f"{url} was not told of {job}" for job in missing)
        yield from (f"{name} is left in the outbox" for name in store.below("outbox"))


class _Actors:
    """In place of a pool of threads actors of the same process."""

    def __init__(self, world: World, process: str) -> None:
        self._world, self._process = world, process

    def submit(self, function: Callable[..., None], *given: Any) -> "Future[None]":
        """See Executor."""
        running: Future[None] = Future()

        def act() -> None:
            try:
                function(*given)
            except Exception as error:
                running.set_exception(error)
            else:
                running.set_result(None)

        self._world.spawn(self._process, act)
        return running


def patched(world: World) -> ExitStack:
    """The waits and delays of the world in place of the machine's, until the stack is closed."""

    def wait(tries: Collection["Future[None]"], seconds: float) -> tuple[set["Future[None]"], set["Future[None]"]]:
        end = world.now + seconds
        while world.now < end and not all(each.done() for each in tries):
            world.sleep(0.1)
        done = {each for each in tries if each.done()}
        return done, set(tries) - done

    stack = ExitStack()
    stack.enter_context(patch.object(delivery, "wait", wait))
    stack.enter_context(patch.object(delivery, "_DELAYS", _DELAYS))
    return stack
