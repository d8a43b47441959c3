"""Clients that upload, relabel and delete datasets, set aliases and delete versions and jobs, while jobs run; gateways
that remove things, by garbage collection and by a retention policy of chance; and the invariants of what is left.
"""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any

from benchmarks.simulation.outside import SimulatedStore
from benchmarks.simulation.world import World
from storage.errors import Conflict, NotFound, Unavailable
from storage.names import new_id
from storage.records import Dataset, Outcome, Version
from storage.repositories.aliases import Alias
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import json_records
from storage.upkeep.cleanup import GarbageCollector, Keep, Policy, remove_expired

ABANDONED_SECONDS = 150.0
"""longer than any upload or relabeling takes here, as a day is outside"""
_MOST_VERSIONS = 6
_REFUSED = (Unavailable, Conflict, NotFound)


class Keepers:
    """Acts of clients and gateways on datasets and versions."""

    def __init__(self, world: World, store: Any) -> None:
        self._world, self._store = world, store
        self._withdrawn: set[str] = set()
        """datasets whose relabeling failed: others may have seen them, but nobody was promised them"""
        self.found_missing: list[str] = []
        """jobs that were trained without their dataset"""

    def inherit(self) -> str:
        """Store documents of long ago, and a dataset that shares them; returns its id.

        Everything counts as abandoned that is not sealed.
        """
        self._world.now -= 2 * ABANDONED_SECONDS
        base = self._manifest(new_id("ds"))
        relabeled = self._manifest(new_id("ds"), base.id)
        self._world.now += 2 * ABANDONED_SECONDS
        content = {_rows(base.id): b"rows", f"datasets/{base.id}/shared/{relabeled.id}": b""}
        self._store.content.update(
            content | {f"datasets/{each.id}/manifest.json": json_records.encode(each) for each in (base, relabeled)}
        )
        return relabeled.id

    def upload(self) -> str:
        """A new dataset, its documents first; raises StoreUnavailable."""
        made = self._manifest(new_id("ds"))
        self._store.create(_rows(made.documents), b"rows")
        json_records.create(self._store, f"datasets/{made.id}/manifest.json", made)
        return made.id

    def any_dataset(self) -> str:
        """One of the datasets that are there, a new one if there is none."""
        there = visible(self._store)
        return self._world.random.choice(there).id if there else self.upload()

    def keep_datasets(self, process: str) -> None:
        """Relabel and delete datasets."""
        while not self._world.calm:
            self._world.sleep(self._world.random.uniform(0.2, 5.0))
            with suppress(*_REFUSED):
                if self._world.random.random() < 0.5:
                    self._relabel(self.any_dataset())
                else:
                    self.datasets(Jobs(self._store)).delete(self.any_dataset())

    def keep_versions(self, process: str) -> None:
        """Set aliases, and delete versions, of the same few numbers."""
        while not self._world.calm:
            self._world.sleep(self._world.random.uniform(0.2, 3.0))
            number = self._world.random.randint(1, _MOST_VERSIONS)
            with suppress(*_REFUSED):
                if self._world.random.random() < 0.6:
                    Models(self._store).set_alias("m", self._world.random.choice(["live", "next"]), number)
                else:
                    Models(self._store).delete_version("m", number)

    def trained(self, job: str, dataset: str) -> None:
        """Note a job that needs its dataset and has it no more."""
        content = self._store.content
        known = next((each for each in visible(self._store) if each.id == dataset), None)
        missing = known is None or _rows(known.documents) not in content
        if missing and dataset not in self._withdrawn and f"jobs/{job}/outcome.json" not in content:
            self.found_missing.append(job)

    def _relabel(self, id: str) -> None:
        base = self.datasets(Jobs(self._store)).get(id)
        made = self._manifest(new_id("ds"), base.documents)
        path: Any = SimpleNamespace(read_bytes=lambda: b"labels")
        file = self._store.file(f"datasets/{made.id}/labels", b"labels")
        self._withdrawn.add(made.id)
        self.datasets(Jobs(self._store))._share(
            base, made.model_copy(update={"files": {"labels": file}}), {"labels": path}
        )
        self._withdrawn.discard(made.id)

    def datasets(self, jobs: Jobs) -> Datasets:
        """The datasets, with a short time until files count as abandoned."""
        return Datasets(self._store, jobs=jobs, abandoned_seconds=ABANDONED_SECONDS)

    def _manifest(self, id: str, documents: str | None = None) -> Dataset:
        counts = {"n_documents": 1, "n_labeled": 1, "n_features": 1, "n_nonzeros": 1}
        created_at = datetime.fromtimestamp(self._world.now, UTC)
        return Dataset(
            id=id,
            documents=documents or id,
            name=None,
            classes=[],
            sha256="",
            warnings=[],
            files={},
            created_at=created_at,
            **counts,
        )


def visible(store: SimulatedStore) -> list[Dataset]:
    """The datasets with a manifest, without a call."""
    manifests = (store.record(f"datasets/{id}/manifest.json", Dataset) for id in store.below("datasets"))
    return [manifest for manifest in manifests if manifest is not None]


def at_rest(store: SimulatedStore) -> bool:
    """Whether nothing is under way, and nothing is left that a cleaning will remove."""
    used = {id for dataset in visible(store) for id in (dataset.id, dataset.documents)}
    marks = [name for name in store.below("deleting") if not name.endswith(".decided")]
    return (
        not marks
        and not store.below("models/m/aliasing")
        and set(store.below("datasets")) == used
        and not list(_files_of_deleted(store))
    )


def violations_of_keepers(store: SimulatedStore) -> Iterator[str]:
    """A sentence for each invariant that does not hold at rest."""
    for dataset in visible(store):
        if _rows(dataset.documents) not in store.content:
            yield f"dataset {dataset.id} has lost its documents"
        yield from (
            f"dataset {dataset.id} has lost {file.key}"
            for file in dataset.files.values()
            if file.key not in store.content
        )
    for name in store.below("models/m/aliases"):
        alias = store.record(f"models/m/aliases/{name}", Alias)
        if alias and f"models/m/deleted/{alias.version}.json" in store.content:
            yield f"alias {name} names version {alias.version}, which was deleted"


def _files_of_deleted(store: SimulatedStore) -> Iterator[str]:
    for name in store.below("models/m/deleted"):
        version = store.record(f"models/m/versions/{name}", Version)
        yield from (file.key for file in version.files.values() if file.key in store.content) if version else ()


def _rows(documents: str) -> str:
    return f"datasets/{documents}/rows"


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
        while True:
            for act in (
                datasets.recover_deletions,
                datasets.remove_abandoned,
                partial(remove_expired, datasets, jobs, models, self._policy),
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
