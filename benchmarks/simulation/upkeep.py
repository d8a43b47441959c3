"""Removals by gateways: garbage collection, retention by a policy of chance, and jobs that clients delete; and the
invariants of the remaining files.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from benchmarks.simulation.keepers import ABANDONED_SECONDS, Keepers
from benchmarks.simulation.outside import SimulatedStore
from benchmarks.simulation.world import World
from storage.errors import Conflict, NotFound, Unavailable
from storage.records import Outcome, Version
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.upkeep.cleanup import GarbageCollector, Keep, Policy, Retention

_LEFTOVER_SECONDS = 20.0
_RETENTION_SHARE = 0.5
"""Share of the worlds that have a policy."""
_DELETIONS_SHARE = 0.5
"""Share of the worlds whose clients delete jobs."""


class Upkeep:
    """Removal of things that are not in use."""

    def __init__(self, world: World, store: Any, keepers: Keepers) -> None:
        self._world, self._store, self._keepers = world, store, keepers
        random = world.random
        self._policy = Policy()
        if random.random() < _RETENTION_SHARE:
            bounds = (None, Keep(count=random.randint(0, 3)), Keep(seconds=random.uniform(1.0, 30.0)))
            self._policy = Policy(*(random.choice(bounds) for _ in Policy._fields))
        self._deletes_jobs = random.random() < _DELETIONS_SHARE

    def clean_up(self, process: str) -> None:
        """Clean up as a gateway does now and then."""
        jobs, models = Jobs(self._store), Models(self._store)
        datasets = self._keepers.datasets(jobs)
        garbage = GarbageCollector(self._store, jobs, models, _LEFTOVER_SECONDS, ABANDONED_SECONDS)
        retention = Retention(datasets, jobs, models, self._policy)
        while True:
            for act in (
                datasets.recover_deletions,
                datasets.remove_abandoned,
                retention.remove_expired,
                garbage.remove_abandoned,
            ):
                with suppress(Unavailable):
                    act()
            self._world.rest(2.0)

    def delete_jobs(self, process: str) -> None:
        """Delete jobs that may have ended."""
        while self._deletes_jobs and not self._world.calm:
            self._world.sleep(self._world.random.uniform(1.0, 10.0))
            with suppress(Unavailable, Conflict, NotFound):
                ids = Jobs(self._store).ids()
                if ids:
                    Jobs(self._store).delete(self._world.random.choice(ids))


def leftovers(store: SimulatedStore) -> Iterator[str]:
    """Keys below jobs that neither their outcome nor a version names, and remains of deleted jobs, but for files of a
    version.
    """
    named = {file.key for version in versions_of(store).values() for file in version.files.values()}
    for id in store.below("jobs"):
        folder = f"jobs/{id}"
        there = f"{folder}/request.json" in store.content
        outcome = store.record(f"{folder}/outcome.json", Outcome) if there else None
        own = {file.key for file in outcome.files.values()} if outcome else set()
        for key in store.keys_below(f"{folder}/attempts" if there else folder):
            if key not in named and key not in own and not (there and key.endswith(".json") and key.count("/") == 3):
                yield key


def versions_of(store: SimulatedStore) -> dict[int, Version]:
    """All versions by number, deleted ones included, without a call."""
    found = {
        name.removesuffix(".json"): store.record(f"models/m/versions/{name}", Version)
        for name in store.below("models/m/versions")
    }
    return {int(number): version for number, version in found.items() if version is not None}
