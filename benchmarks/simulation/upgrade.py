"""An upgrade while jobs run: a store of the first format, then processes of this release beside processes of the next
with longer records.

This release passes over what it does not know of them. No process of it is left when the storm is over.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from benchmarks.simulation.outside import SimulatedStore
from benchmarks.simulation.world import World
from storage.names import new_id
from storage.records import Outcome
from storage.repositories.idempotency import IdempotencyKey, IdempotencyRecord
from storage.store import json_records

KEY = "key-before"
"""Idempotency key of the job that was there before."""
FINGERPRINT = "the same"
_SHARE = 0.3
"""Share of the worlds with an upgrade."""
_META = b'{"classes": ["no", "yes"], "n_features": 1}'


class Upgrade:
    """The upgrade of one world, if it has one."""

    def __init__(self, world: World, store: SimulatedStore) -> None:
        self._world, self._store = world, store
        self.planned = world.random.random() < _SHARE
        self._begun = False

    def inherit(self, dataset: str) -> str:
        """A job of this dataset in the records of a store of format 1, at some point of its life; returns its id."""
        id, now = new_id("job"), datetime.fromtimestamp(self._world.now, UTC).isoformat()
        request = f'"id":"{id}","dataset":"{dataset}","model":"m","algorithm":"tsvm","options":{{}},"seed":0'
        content, folder, key = self._store.content, f"jobs/{id}", IdempotencyKey(KEY, None, FINGERPRINT).digest
        content[f"idempotency/{key}.json"] = json_records.encode(IdempotencyRecord(job=id, fingerprint=FINGERPRINT))
        content[f"open/{id}"] = b""
        content[f"{folder}/request.json"] = f'{{{request},"key":"{key}","created_at":"{now}"}}'.encode()
        age = self._world.random.randrange(3)
        if age > 0:
            content[f"{folder}/attempts/1.json"] = f'{{"number":1,"worker":"w","started_at":"{now}"}}'.encode()
        if age > 1:
            file = self._store.file(f"{folder}/attempts/1/model_meta.json", _META)
            content[file.key] = _META
            outcome = (
                f'"state":"succeeded","attempt":1,"finished_at":"{now}","status":"converged",'
                f'"files":{{"model_meta":{file.model_dump_json()}}}'
            )
            content[f"{folder}/outcome.json"] = f"{{{outcome}}}".encode()
            Outcome.model_validate_json(content[f"{folder}/outcome.json"])
        return id

    def started(self, process: str) -> None:
        """Note a process, which is of the next release once the upgrade has begun."""
        if self._begun:
            self._store.next_release.add(process)

    def replace_all(self, processes: Callable[[], Any]) -> None:
        """End the processes of this release one by one; those in their places are of the next."""
        self._world.sleep(self._world.random.uniform(0.0, 30.0))
        self._begun = True
        for process in processes():
            self._world.sleep(self._world.random.uniform(0.0, 2.0))
            self._world.end(process)
