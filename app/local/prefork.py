"""Prefork model of ``halfmoon up``: workers are forks of the supervisor, which has loaded the libraries and the
compiled kernels.

A worker that dies is replaced within milliseconds, however busy the machine is, and all workers share the memory of
what was loaded.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from app.local.supervisor import ForkedFunction
from core.warm_up import FIRST, REST
from storage.errors import RedisUnavailable
from storage.process.settings import Settings
from storage.queue.connection import connect
from storage.queue.redis_state import RedisState
from workers.worker.run import run_worker, worker_name
from workers.worker.warm_up import warming


class Prefork:
    """``count`` workers with these settings. They close the ``private`` descriptors of the supervisor.

    The workers are announced in Redis as starting, from the beginning of the warm-up until they have started.
    """

    def __init__(self, count: int, settings: Mapping[str, str], private: Sequence[int]) -> None:
        self._settings = Settings.model_validate(settings)
        self._private = private
        self._names = [f"worker-{number}" for number in range(1, count + 1)]
        self._announced = [worker_name(os.getpid(), name) for name in self._names]
        self._redis_state = RedisState(
            connect(self._settings.redis_url, self._settings.redis_timeout_seconds), self._settings.queue
        )

    def warm_up(self) -> Iterator[None]:
        """Compile the kernels of most jobs or load them from the cache, in steps, between which the caller may do
        something else.

        Raises CannotStart.
        """
        self._announce()
        for _ in warming(FIRST):
            yield
            self._announce()

    def workers(self) -> Iterator[ForkedFunction]:
        """The workers, to be started after the warm-up."""
        return (ForkedFunction(name, partial(_work, self._settings, self._private)) for name in self._names)

    def started(self) -> Iterator[None]:
        """Withdraw the announcement, as the workers report for themselves now; returns the warm-up for all other jobs.

        It compiles kernels that jobs load from the cache then, and that workers have which take the place of others;
        aside, since jobs are under way.
        """
        with suppress(RedisUnavailable):
            for name in self._announced:
                self._redis_state.remove_worker(name)
        return warming(REST, aside=True)

    def _announce(self) -> None:
        with suppress(RedisUnavailable):
            for name in self._announced:
                # no step of the warm-up takes longer
                self._redis_state.record_heartbeat(name, 60.0, starting=True)


def _work(settings: Settings, private: Sequence[int], replaces: int | None) -> int:
    for descriptor in private:
        os.close(descriptor)
    return run_worker(settings, warmed=True, replaces=replaces)
