"""Without Redis, whatever is asked of it is an error by name."""

from collections.abc import Callable
from typing import Any

import pytest
from redis import Redis

from storage.errors import RedisUnavailable
from storage.queue.queue import Queue
from storage.queue.redis_state import RedisState
from storage.records import Progress
from tests.waiting import HANG

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
