"""Aliases of models: names of versions that may move. That their versions exist is a matter of
``storage.repositories.models``.

models/{name}/aliases/{alias}.json version of the alias
models/{name}/aliasing/{n}.{mark}  an alias is being set to version n, which cannot be deleted meanwhile
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

from pydantic import AwareDatetime

from storage.errors import NotFound, StoreDamaged
from storage.names import is_id, is_name, new_id
from storage.records import Record
from storage.repositories.sightings import Sightings
from storage.store import Store, json_records


class Alias(Record):
    """Name of a version that may move: ``models/{name}/aliases/{alias}.json``, which is replaced."""

    version: int
    updated_at: AwareDatetime


_MARK_SECONDS = 60
"""Seconds for which a mark was seen, after which it counts as abandoned."""


class Aliases:
    """The aliases of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sightings = Sightings()

    def find(self, model: str, alias: str) -> Alias:
        """The record of an alias; raises NotFound, StoreDamaged."""
        found = json_records.find(self._store, _key(model, alias), Alias) if is_name(model) and is_name(alias) else None
        if found is None:
            raise NotFound("model alias", f"{model}@{alias}")
        return found

    def readable(self, model: str) -> Iterator[tuple[str, int]]:
        """The aliases of a model without damaged ones, sorted, each with the number of its version."""
        for name in self._store.children(f"models/{model}/aliases"):
            alias = name.removesuffix(".json")
            if alias != name and is_name(alias):
                record = json_records.find_readable(self._store, _key(model, alias), Alias)
                if record is not None:
                    yield alias, record.version

    def put(self, model: str, alias: str, number: int) -> Alias:
        """Set an alias to a version, at once for every process."""
        record = Alias(version=number, updated_at=datetime.now(UTC))
        self._store.replace(_key(model, alias), json_records.encode(record))
        return record

    def delete(self, model: str, alias: str) -> None:
        """Remove an alias, damaged or not; raises NotFound."""
        with suppress(StoreDamaged):
            self.find(model, alias)
        self._store.delete(_key(model, alias))

    def delete_all(self, model: str) -> None:
        """Remove all aliases of a model."""
        self._store.delete(f"models/{model}/aliases")

    @contextmanager
    def marked(self, model: str, number: int) -> Iterator[None]:
        """A block in which others see that an alias is being set to a version."""
        mark = f"models/{model}/aliasing/{number}.{new_id('aliasing')}"
        self._store.create(mark, b"")
        try:
            yield
        finally:
            self._store.delete(mark)

    def being_set(self, model: str, number: int) -> bool:
        """Whether an alias is being set to a version."""
        return any(mark.startswith(f"{number}.") and not self._abandoned(mark) for mark in self._marks(model))

    def remove_abandoned(self, model: str) -> None:
        """Remove the marks of aliases that were never set."""
        for mark in self._marks(model):
            if self._abandoned(mark):
                self._store.delete(f"models/{model}/aliasing/{mark}")

    def _abandoned(self, mark: str) -> bool:
        return self._sightings.seconds(mark) > _MARK_SECONDS

    def _marks(self, model: str) -> Iterator[str]:
        return (
            mark
            for mark in self._store.children(f"models/{model}/aliasing")
            if is_id("aliasing", mark.partition(".")[2])
        )


def _key(model: str, alias: str) -> str:
    return f"models/{model}/aliases/{alias}.json"
