"""Published models: numbered versions that never change, and aliases that may move.

models/{name}/versions/{n}.json   version n; numbers from 1, without gaps, never used again
models/{name}/deleted/{n}.json    version n was deleted: its record stays, so that its number and its job are not taken again
models/{name}/aliases/{alias}.json
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from workers import records
from workers.contract import Alias, JobRequest, Outcome, Record, Version
from workers.errors import Conflict, InvalidName, NotFound
from workers.names import check_name
from workers.storage import KeyMissing, Store

if TYPE_CHECKING:
    from core.model import Model

_CACHED_VERSIONS = 10_000
_NUMBERS = 10**9


class _Deletion(Record):
    """A version was deleted."""

    deleted_at: datetime


class Models:
    """The models of a store. Names that cannot be names are names of nothing: NotFound."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._versions: dict[tuple[str, int], Version] = {}

    def names(self, limit: int = 50, cursor: str | None = None) -> tuple[list[str], str | None]:
        """At most ``limit`` names of models that have a version, sorted, after ``cursor``, and the cursor of the next page."""
        found: list[str] = []
        for name in self._store.children("models"):
            if (cursor is not None and name <= cursor) or not self._numbers(name):
                continue
            if len(found) == limit:
                return found, found[-1]
            found.append(name)
        return found, None

    def versions(self, name: str) -> list[Version]:
        """All versions of a model, oldest first; raises NotFound if there is none."""
        numbers = self._numbers(name)
        if not numbers:
            raise NotFound("model", name)
        return [self._read(name, number) for number in numbers]

    def version(self, name: str, number: int) -> Version:
        """One version; raises NotFound."""
        missing = NotFound("model version", f"{name}/{number}")
        if not _nameable(name) or not 0 < number < _NUMBERS or self._store.exists(_deleted_key(name, number)):
            raise missing
        try:
            return self._read(name, number)
        except KeyMissing:
            raise missing from None

    def resolve(self, reference: str) -> Version:
        """The version that ``name`` (its newest) or ``name@alias`` stands for now; raises NotFound."""
        name, at, alias = reference.partition("@")
        if at:
            return self.version(name, self._alias(name, alias).version)
        numbers = self._numbers(name)
        if not numbers:
            raise NotFound("model", name)
        return self._read(name, numbers[-1])

    def load(self, version: Version) -> "Model":
        """The model itself, read from its verified files; raises NotFound if it was deleted meanwhile."""
        from safetensors.numpy import load_file

        from core.model import Model

        try:
            arrays = load_file(self._store.local(version.files["model"]))
            meta = json.loads(self._store.local(version.files["model_meta"]).read_bytes())
        except KeyMissing:
            raise NotFound("model version", f"{version.name}/{version.number}") from None
        return Model.from_arrays(arrays, meta)

    def aliases(self, name: str) -> dict[str, int]:
        """Version of each alias of a model, sorted by alias; raises NotFound for a model without versions."""
        if not self._numbers(name):
            raise NotFound("model", name)
        return {alias: self._alias(name, alias).version for alias in self._alias_names(name)}

    def set_alias(self, name: str, alias: str, number: int) -> Alias:
        """Let an alias stand for a version, from now on and for every process; raises InvalidName, NotFound."""
        check_name("alias", alias)
        self.version(name, number)
        record = Alias(version=number, updated_at=datetime.now(UTC))
        self._store.replace(f"models/{name}/aliases/{alias}.json", records.encode(record))
        return record

    def delete_alias(self, name: str, alias: str) -> None:
        """Remove an alias; raises NotFound."""
        self._alias(name, alias)
        self._store.delete(f"models/{name}/aliases/{alias}.json")

    def delete_version(self, name: str, number: int) -> None:
        """Delete a version and its files; raises NotFound, and Conflict while an alias points to it. Its number is not used again."""
        version = self.version(name, number)
        pointing = [alias for alias, to in self.aliases(name).items() if to == number]
        if pointing:
            raise Conflict(f"version {number} of model {name!r} has the alias {pointing[0]!r}")
        self._delete(version)

    def delete(self, name: str) -> None:
        """Delete all versions and aliases of a model; raises NotFound. Its numbers are not used again."""
        versions = self.versions(name)
        self._store.delete(f"models/{name}/aliases")
        for version in versions:
            self._delete(version)

    def publish(self, request: JobRequest, outcome: Outcome) -> Version:
        """The version of this success, made at the first free number unless there is one already.

        All numbers below a new one were read and are not of this job, and of many who try the same number one succeeds: so a job has at most
        one version, however many publish it at once.
        """
        number = 0
        while True:
            number += 1
            try:
                version = self._read(request.model, number)
            except KeyMissing:
                version = self._version(request, outcome, number)
                if records.create(self._store, _version_key(request.model, number), version):
                    return version
                version = self._read(request.model, number)
            if version.job == request.id:
                return version

    def _version(self, request: JobRequest, outcome: Outcome, number: int) -> Version:
        assert outcome.status is not None, "a success has a status"
        meta: dict[str, Any] = json.loads(self._store.local(outcome.files["model_meta"]).read_bytes())
        return Version(
            name=request.model,
            number=number,
            job=request.id,
            dataset=request.dataset,
            algorithm=request.algorithm,
            options=request.options,
            classes=meta["classes"],
            n_features=meta["n_features"],
            objective=outcome.objective,
            status=outcome.status,
            created_at=datetime.now(UTC),
            files=outcome.files,
        )

    def _delete(self, version: Version) -> None:
        records.create(self._store, _deleted_key(version.name, version.number), _Deletion(deleted_at=datetime.now(UTC)))
        for kind in ("model", "model_meta"):
            self._store.delete(version.files[kind].key)

    def _read(self, name: str, number: int) -> Version:
        """A version's record, deleted or not; raises KeyMissing. Records never change, so they are kept."""
        version = self._versions.get((name, number))
        if version is None:
            version = records.read(self._store, _version_key(name, number), Version)
            if len(self._versions) >= _CACHED_VERSIONS:
                self._versions.clear()
            self._versions[name, number] = version
        return version

    def _numbers(self, name: str) -> list[int]:
        """Numbers of the versions that are not deleted, ascending."""
        if not _nameable(name):
            return []
        deleted = set(self._store.children(f"models/{name}/deleted"))
        return sorted(int(entry.removesuffix(".json")) for entry in self._store.children(f"models/{name}/versions") if entry not in deleted)

    def _alias_names(self, name: str) -> Iterator[str]:
        return (entry.removesuffix(".json") for entry in self._store.children(f"models/{name}/aliases"))

    def _alias(self, name: str, alias: str) -> Alias:
        found = records.find(self._store, f"models/{name}/aliases/{alias}.json", Alias) if _nameable(name) and _nameable(alias) else None
        if found is None:
            raise NotFound("model alias", f"{name}@{alias}")
        return found


def _nameable(name: str) -> bool:
    try:
        check_name("model", name)
    except InvalidName:
        return False
    return True


def _version_key(name: str, number: int) -> str:
    return f"models/{name}/versions/{number}.json"


def _deleted_key(name: str, number: int) -> str:
    return f"models/{name}/deleted/{number}.json"
