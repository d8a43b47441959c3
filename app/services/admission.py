"""Whether the store may be used: before its admission, and while it is not bound to the queue, a gateway accepts and
repairs no job. And limits on unfinished jobs, of all callers together and of one API key.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import NamedTuple

import structlog
from redis import Redis

from app.errors import TooManyRequests, rate_limit
from app.services.version_cache import ANSWER_SECONDS
from storage.errors import CannotStart, RedisUnavailable, Unavailable
from storage.repositories.jobs import Jobs
from storage.store import Store
from storage.upkeep.binding import Binding, admit

_START_SECONDS = 20.0
"""Seconds that a start waits for the store. A gateway whose store hangs starts all the same, and is not ready."""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_SECONDS = 1.0
"""Seconds for which an answer of the store is remembered."""


class Admission:
    """Admission of the store of one gateway, and its binding to the queue.

    ``problem`` says why jobs are not accepted; None if they are.
    """

    def __init__(self, store: Store, redis: Redis, queue: str) -> None:
        self.problem: str | None = "the store was not looked at yet"
        self._store = store
        self._redis = redis
        self._queue = queue
        self._binding: Binding | None = None

    def start(self) -> None:
        """Look for the first time.

        Raises CannotStart for a store that must not be used; one that does not answer is looked at again later.
        """
        refused: list[CannotStart] = []

        def look() -> None:
            try:
                self._look()
            except CannotStart as error:
                refused.append(error)
            except Unavailable as error:
                self.problem = str(error)

        thread = threading.Thread(target=look, name="admission", daemon=True)
        thread.start()
        thread.join(_START_SECONDS)
        if refused:
            raise refused[0]

    def renew(self) -> None:
        """Check store and Redis again, and renew their binding. Call it every few seconds. Raises Unavailable."""
        try:
            self._look()
        except CannotStart as error:
            if self.problem != str(error):
                _log.error("no job is accepted", error=str(error))
            self.problem = str(error)
        except Unavailable as error:
            # the binding holds while the store or Redis does not answer
            if self._binding is None or not self._binding.bound:
                self.problem = str(error)
            raise

    def check(self) -> None:
        """Raises RedisUnavailable unless jobs are accepted."""
        if self.problem is not None:
            raise RedisUnavailable(self.problem)

    def when_bound(self, function: Callable[[], object]) -> Callable[[], None]:
        """The function, which does nothing while jobs are not accepted."""

        def call() -> None:
            if self.problem is None:
                function()

        return call

    def release(self) -> None:
        """Let the queue be free for another store; a failure does not matter any more when the gateway stops."""
        if self._binding is not None:
            with suppress(Unavailable):
                self._binding.release()

    def _look(self) -> None:
        if self._binding is None:
            self._binding = Binding(self._store, admit(self._store), self._redis, self._queue)
        if self._binding.bound:
            self._binding.renew()
        if not self._binding.bound:
            self._binding.bind()
        self.problem = None


class StoreProbe:
    """Remembers the last answer of ``probe`` for a second. Callers that come meanwhile wait for it, but not for a store
    that hangs: otherwise they would soon have all threads that answer.
    """

    def __init__(
        self,
        probe: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        patience: float = ANSWER_SECONDS,
    ) -> None:
        self._probe = probe
        self._clock = clock
        self._patience = patience
        self._lock = threading.Lock()
        self._answer: Future[bool] | None = None
        self._asked = 0.0
        self._until = 0.0

    def writable(self) -> bool:
        """Whether the store could be written within the last second, and answers in time."""
        with self._lock:
            answer = self._answer
            if answer is None or (answer.done() and self._clock() >= self._until):
                answer = self._answer = Future()
                self._asked = self._clock()
                threading.Thread(target=self._ask, args=(answer,), name="store probe", daemon=True).start()
            patience = self._asked + self._patience - self._clock()
        try:
            return answer.result(max(0.0, patience))
        except TimeoutError:
            return False

    def _ask(self, answer: Future[bool]) -> None:
        try:
            found = self._probe()
        except Exception as error:
            answer.set_exception(error)
        else:
            self._until = self._clock() + _SECONDS
            answer.set_result(found)


_UNIT = "concurrent-requests"
_RETRY_SECONDS = 5


class Allowance(NamedTuple):
    """Number of unfinished jobs that a caller may still have, by the tighter of two limits: on all jobs, and on the
    caller's own.
    """

    name: str
    most: int
    left: int

    def check(self) -> None:
        """Raises TooManyRequests if no job is left."""
        if self.left <= 0:
            raise TooManyRequests(self.name, _UNIT, self.most, self.left, _RETRY_SECONDS)

    def headers(self) -> dict[str, str]:
        """The rate-limit headers."""
        return rate_limit(self.name, _UNIT, self.most, self.left)


class Backlog:
    """Counts unfinished jobs, in all and by API key. Without keys all callers count as one."""

    def __init__(self, jobs: Jobs, most: int, most_per_key: int) -> None:
        self._jobs = jobs
        self._most = most
        self._most_per_key = most_per_key

    def allowance(self, key_id: str | None) -> Allowance:
        """The allowance of a key now. Raises StoreUnavailable."""
        ids = self._jobs.unfinished_ids()
        own = sum(1 for request in self._jobs.unfinished_requests(ids).values() if request.caller == key_id)
        allowances = (
            Allowance("jobs", self._most_per_key, self._most_per_key - own),
            Allowance("jobs of everybody", self._most, self._most - len(ids)),
        )
        return min(allowances, key=lambda allowance: allowance.left)
