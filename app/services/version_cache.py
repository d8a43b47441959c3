"""Caches of versions by reference, and of loaded models.

While the store does not answer, the last known version is served, and says so.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import copy_context
from threading import Lock
from typing import NamedTuple

import structlog

from core.models.model import Model
from storage.errors import StoreDamaged, StoreUnavailable
from storage.recent import LastUsed, Recent
from storage.records import Job, JobState, Version
from storage.repositories.models import Models
from workers.encoders.catalogue import Encoders
from workers.encoders.rows import with_encoder

_MAX_REFERENCES = 10_000
_PATIENCE_SECONDS = 0.15
"""Seconds that a request waits for the store before it takes the last known version."""
ANSWER_SECONDS = 5.0
"""Seconds that a request waits for the store where what is in memory will not do as long as the store answers."""
_LOOK_SECONDS = 0.5
"""Seconds between two looks whether the store answers again."""
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Resolved(NamedTuple):
    """A version, and how old the knowledge is that the reference names it."""

    version: Version
    age: float | None = None
    """seconds since the store said so, if it does not answer now; None if it does, or if the reference names the
    version by its number"""


class _Known(NamedTuple):
    version: Version
    asked_at: float
    stale: bool = False
    """whether something has changed since that may give the reference another version"""


class VersionCache:
    """Versions by reference: ``name``, ``name@alias`` or ``name/number``; for one event loop, the store is asked in
    threads of ``executor``.

    1. For ``fresh_seconds`` after the store was asked, its answer stands. In the second half of this time it is asked
       again in the background, so that a model in demand never waits for it. With 0 it is asked by every request.
    2. A store that does not answer within a moment, or fails, counts as away. Then what is known is served at once,
       and one request after the other has the store looked at in the background.
    3. What is known of a name or an alias counts for ``max_age_seconds``. A version by its number does not change,
       so it counts for ever.
    4. A request waits ``ANSWER_SECONDS`` for what is not known, or has changed in this process: a store that is only
       slow names the newest version. An answer that comes later counts for the next.
    """

    def __init__(
        self,
        models: Models,
        executor: Executor,
        fresh_seconds: float,
        max_age_seconds: float,
        *,
        patience: float = _PATIENCE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._models = models
        self._executor = executor
        self._fresh_seconds = fresh_seconds
        self._max_age_seconds = max_age_seconds
        self._patience = patience
        self._clock = clock
        self._known = Recent[str, _Known](_MAX_REFERENCES)
        self._forgotten = 0
        self._lock = threading.Lock()
        self._renewing: set[str] = set()
        self._away = False
        self._look: asyncio.Future[Version] | None = None
        self._looked_at = 0.0

    async def resolve(self, reference: str) -> Resolved:
        """The version that a reference names.

        Raises NotFound, and StoreUnavailable where nothing is known, or for too long.
        """
        known = self._known.get(reference)
        if known is None:
            return Resolved(await self.ask(reference, ANSWER_SECONDS))
        age = self._clock() - known.asked_at
        if age < self._fresh_seconds and not known.stale:
            if age > self._fresh_seconds / 2 and not self._away and reference not in self._renewing:
                self._renewing.add(reference)
                self._ask(reference).add_done_callback(lambda asked: self._renewing.discard(reference))
            return Resolved(known.version)
        if self._away:
            if (self._look is None or self._look.done()) and self._clock() - self._looked_at >= _LOOK_SECONDS:
                self._looked_at = self._clock()
                self._look = self._ask(reference)
            return self._as_last_known(reference, known)
        try:
            return Resolved(await self.ask(reference, ANSWER_SECONDS if known.stale else self._patience))
        except StoreUnavailable:
            return self._as_last_known(reference, known)

    async def ask(self, reference: str, seconds: float) -> Version:
        """The version that a reference names, as the store says; raises NotFound, and StoreUnavailable where it does
        not say so in time.
        """
        asking = self._ask(reference)
        # a call that has not begun is given up; one that hangs in the store is left alone, and its answer is taken when
        # it comes
        if not (await asyncio.wait([asking], timeout=seconds))[0]:
            asking.cancel()
            self._set_away("it takes too long")
            raise StoreUnavailable(
                f"the store has not answered for {seconds:g} s, and the model that {reference!r} names is not in "
                "memory yet; ask again later"
            )
        return asking.result()

    def refresh(self, name: str, *, deleted: bool = False) -> None:
        """Ask the store anew: the versions or aliases of a model were changed in this process.

        While it does not answer, what was known is served, unless some of it was ``deleted``.
        """
        with self._lock:
            self._forgotten += 1
            for reference, known in list(self._known.items()):
                if known.version.name == name and deleted:
                    self._known.pop(reference, None)
                elif known.version.name == name and "/" not in reference:
                    self._known[reference] = known._replace(stale=True)

    def published(self, job: Job) -> Job:
        """The job; whoever is told that it succeeded is served the version that it made."""
        if job.state is JobState.SUCCEEDED:
            self.refresh(job.request.model)
        return job

    def _as_last_known(self, reference: str, known: _Known) -> Resolved:
        if "/" in reference:
            return Resolved(known.version)
        age = self._clock() - known.asked_at
        if age > self._max_age_seconds:
            raise StoreUnavailable(
                f"the store has not answered for {age:.0f} s, so it is not known any more which version "
                f"{reference!r} names"
            )
        return Resolved(known.version, age)

    def _ask(self, reference: str) -> "asyncio.Future[Version]":
        asking = asyncio.get_running_loop().run_in_executor(self._executor, copy_context().run, self._read, reference)
        asking.add_done_callback(_hear)
        return asking

    def _read(self, reference: str) -> Version:
        """Ask the store, in a thread."""
        asked_at, forgotten = self._clock(), self._forgotten
        try:
            version = self._models.version_of(reference)
        except StoreDamaged:
            raise
        except StoreUnavailable as error:
            self._set_away(str(error))
            raise
        except BaseException:
            self._known.pop(reference, None)
            self._away = False
            raise
        self._away = False
        with self._lock:
            if forgotten == self._forgotten:
                self._known[reference] = _Known(version, asked_at)
        return version

    def _set_away(self, error: str) -> None:
        if not self._away:
            _log.warning("the store does not answer: models in memory go on by what was last known", error=error)
        self._away, self._looked_at = True, self._clock()


def _hear(asked: "asyncio.Future[Version]") -> None:
    """Take note of the error of a call that nobody waits for any more."""
    if not asked.cancelled():
        asked.exception()


class ModelCache:
    """Loaded models, up to ``most`` bytes."""

    def __init__(self, models: Models, most: int, encoders: Encoders) -> None:
        self._models = models
        self._encoders = encoders
        self.loaded = LastUsed[Model](most, lambda model: model.nbytes)
        self.loads = 0
        self._load_lock = Lock()

    def find(self, version: Version) -> Model | None:
        """The model of a version, if it is loaded."""
        return self.loaded.find((version.name, version.number, version.job))

    def load(self, version: Version) -> Model:
        """The model of a version. Concurrent callers read it from the store once. Raises NotFound."""
        with self._load_lock:
            model = self.find(version)
            if model is None:
                model = with_encoder(self._models.load(version), self._encoders)
                self.loads += 1
                self.loaded.keep((version.name, version.number, version.job), model)
            return model
