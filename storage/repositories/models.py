"""Published models: numbered versions that never change, and aliases that may move (``storage.repositories.aliases``).

The name of a model stands for its newest version that takes over: one that is clearly worse than the version that was
served before does not (``Version.comparison``). That is a part of the record of the version, so it is served from the
moment of its creation, or never.

models/{name}/versions/{n}.json    version n; numbers start at 1, have no gaps and are never used again
models/{name}/deleted/{n}.json     version n was deleted; its record stays, so that neither its number nor its job
                                   gets another version
"""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from storage.errors import Conflict, NotFound, StoreDamaged
from storage.names import check_name, first_page, is_name, numbers_in, version_number
from storage.recent import Recent
from storage.records import ConfidenceLevel, File, Job, JobRequest, Outcome, Record, Version
from storage.repositories.aliases import Alias, Aliases
from storage.repositories.sightings import Sightings
from storage.store import KeyMissing, Store, json_records
from storage.store.json_records import in_parallel

if TYPE_CHECKING:
    from core.models.model import Model

_CACHED_VERSIONS = 10_000
"""Number of records, of some kilobytes each, that a process caches."""
_NUMBERS = 10**9
_FILES = ("model", "model_meta", "held_out")
"""Files of an outcome that a version names, the last only after a training that left labels out."""
_UNDO_SECONDS = 60
"""Seconds for which a deletion was seen, after which its own process neither completes nor undoes it."""

Needed = Callable[[str, Collection[int]], Job | None]
"""Function of the name of a model and numbers of versions: an unfinished job that needs one of them, or None."""


class LeftOut(NamedTuple):
    """Predictions of labels that cross-validation left out, each by a model that was not told the label."""

    positions: NDArray[np.int64]
    """shape (n,), ascending: positions of the documents in the dataset of the version"""
    probabilities: NDArray[np.float32]
    """shape (n, n_classes)"""


class _Deletion(Record):
    """Deletion of a version."""

    deleted_at: datetime


class Models:
    """Models of a store. For an invalid name its calls raise NotFound."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._aliases = Aliases(store)
        self._sightings = Sightings()
        self._versions: Recent[tuple[str, int], Version] = Recent(_CACHED_VERSIONS)
        self._without_files: dict[str, set[int]] = {}
        self._last: Recent[str, int] = Recent(_CACHED_VERSIONS)
        """highest known number, deleted or not, by name"""

    def names(self, limit: int = 50, cursor: str | None = None) -> tuple[list[str], str | None]:
        """A page of the names of models that have a version, sorted, and the cursor of the next page."""
        return first_page(self.every(cursor), limit, str)

    def every(self, after: str | None = None) -> Iterator[str]:
        """The names of models that have a version, sorted, after ``after``."""
        return (
            name for name in self._store.children("models") if (after is None or name > after) and self._numbers(name)
        )

    def every_version(self) -> Iterator[Version]:
        """All versions of all models; deleted ones as long as they have all their files, since a deletion may be undone
        until it removes the first.

        Raises StoreDamaged for a version that is not deleted: who removes what no version names must know all of them.
        """
        for name in filter(is_name, self._store.children("models")):
            deleted = self._deleted_numbers(name)
            for number in sorted(
                numbers_in(self._store.children(f"models/{name}/versions")) - self._without_files.get(name, set())
            ):
                version = self._find_readable(name, number) if number in deleted else self._read(name, number)
                if version is not None and (number not in deleted or self._is_whole(version)):
                    yield version

    def deleted(self, name: str, number: int) -> bool:
        """Whether this version was deleted."""
        return self._store.exists(_deleted_key(name, number))

    def versions(self, name: str) -> list[Version]:
        """The versions of a model that can be read, oldest first; raises NotFound if there is none at all."""
        numbers = self._existing(name)
        unknown = [number for number in numbers if (name, number) not in self._versions]
        read = dict(zip(unknown, in_parallel(partial(self._find_readable, name), unknown), strict=True))
        found = (read[number] if number in read else self._find_readable(name, number) for number in numbers)
        return [version for version in found if version is not None]

    def version(self, name: str, number: int) -> Version:
        """One version; raises NotFound."""
        missing = NotFound("model version", f"{name}/{number}")
        if not is_name(name) or not 0 < number < _NUMBERS or self.deleted(name, number):
            raise missing
        try:
            return self._read(name, number)
        except KeyMissing:
            raise missing from None

    def version_of(self, reference: str) -> Version:
        """The version of ``name/number``, or of a name or alias as in ``resolve``; raises NotFound, StoreDamaged."""
        name, slash, text = reference.partition("/")
        if not slash:
            return self.resolve(reference)
        number = version_number(text)
        if number is None:
            raise NotFound("model version", reference)
        return self.version(name, number)

    def resolve(self, reference: str) -> Version:
        """The version of ``name@alias``, or of ``name``: the newest that takes over. Raises NotFound, StoreDamaged."""
        name, at, alias = reference.partition("@")
        return self.version(name, self._aliases.find(name, alias).version) if at else self._served(name)

    def newest(self, name: str) -> int:
        """Number of the newest version of a model, whether it takes over or not; raises NotFound.

        Numbers have no gaps, so after one listing only the next number is looked for.
        """
        last = (self._last.get(name) or self.last_number(name)) if is_name(name) else 0
        if not last:
            raise NotFound("model", name)
        while self._store.exists(_version_key(name, last + 1)):
            last += 1
        self._last[name] = last
        return self._existing(name)[-1] if self.deleted(name, last) else last

    def last_number(self, name: str) -> int:
        """Highest number that a version of a model has, or had before it was deleted; 0 if there was none."""
        return max(numbers_in(self._store.children(f"models/{name}/versions")), default=0)

    def load(self, version: Version) -> "Model":
        """The model of a version, from its verified files; raises NotFound if it was deleted meanwhile."""
        from safetensors.numpy import load_file

        from core.models.io import read_model

        arrays = load_file(self._local(version, "model"))
        return read_model(arrays, json.loads(self._local(version, "model_meta").read_bytes()))

    def aliases(self, name: str) -> dict[str, int]:
        """Number of the version of each alias, sorted by alias; raises NotFound for a model without versions."""
        numbers = self._existing(name)
        return {alias: number for alias, number in self._aliases.readable(name) if number in numbers}

    def set_alias(self, name: str, alias: str, number: int) -> Alias:
        """Set an alias to a version, at once for every process; raises InvalidName, NotFound."""
        check_name("alias", alias)
        self.version(name, number)
        # a deletion of the version after this line sees the mark or the alias; one before it is seen here
        with self._aliases.marked(name, number):
            self.version(name, number)
            return self._aliases.put(name, alias, number)

    def delete_alias(self, name: str, alias: str) -> None:
        """Remove an alias, damaged or not; raises NotFound."""
        self._aliases.delete(name, alias)

    def delete_version(self, name: str, number: int, needed: Needed = lambda name, numbers: None) -> None:
        """Delete a version and its files, unless it is damaged: then nothing names them. Its number is not used again.

        Raises NotFound, and Conflict while an alias points to it or a job needs it.
        """
        with suppress(StoreDamaged):
            self.version(name, number)
        self._refuse_if_named(name, number, needed)
        if not self._remove(name, [number], lambda marked: self._refuse_if_named(name, number, needed)):
            raise NotFound("model version", f"{name}/{number}")

    def delete(self, name: str, needed: Needed = lambda name, numbers: None) -> None:
        """Delete all versions and aliases of a model; its numbers are not used again.

        Raises NotFound, and Conflict while a job needs a version.
        """
        numbers = self._existing(name)
        self._refuse_if_needed(name, numbers, needed)
        self._remove(name, numbers, lambda marked: self._refuse_if_needed(name, marked, needed))
        self._aliases.delete_all(name)

    def remove_abandoned(self, needed: Needed = lambda name, numbers: None) -> None:
        """Complete deletions of versions that were cut short, or undo them; remove marks of aliases never set."""
        for name in self._store.children("models"):
            self._aliases.remove_abandoned(name)
            for number in self._deleted_numbers(name) - self._without_files.setdefault(name, set()):
                deletion = json_records.find_readable(self._store, _deleted_key(name, number), _Deletion)
                # one that was undone may be followed by another of the same version, at another time
                if (
                    deletion is not None
                    and self._sightings.seconds(f"{name}/{number} {deletion.deleted_at}") > _UNDO_SECONDS
                ):
                    with suppress(StoreDamaged):  # nobody knows whether a job that cannot be read needs it
                        self._recover_deletion(name, number, needed)

    def _recover_deletion(self, name: str, number: int, needed: Needed) -> None:
        """Complete a deletion, or undo it: a refused one stays where the store fails in that moment.

        What has lost a file was not refused.
        """
        try:
            self._refuse_if_named(name, number, needed)
        except Conflict:
            version = self._find_readable(name, number)
            if version is not None and self._is_whole(version):
                self._store.delete(_deleted_key(name, number))
                return
        self._delete_files(name, number)
        self._without_files[name].add(number)

    def publish(self, request: JobRequest, outcome: Outcome) -> Version:
        """The version of this success; if it has none yet, it gets the first free number. Raises StoreDamaged.

        A job has at most one version, however many processes publish it at once: all numbers below a new one belong to
        other jobs, and of many processes that create the same number one succeeds. The numbers that existed before the
        outcome are not read, however many these are.
        """
        number = outcome.versions_before
        while True:
            number += 1
            try:
                version = self._read(request.model, number)
            except KeyMissing:
                # its files are gone if others have published it meanwhile, and then deleted it
                with suppress(KeyMissing):
                    version = self._version(request, outcome, number)
                    if json_records.create(self._store, _version_key(request.model, number), version):
                        return version
                version = self._read(request.model, number)
            if version.job == request.id:
                return version

    def _version(self, request: JobRequest, outcome: Outcome, number: int) -> Version:
        assert outcome.status is not None, "a success has a status"
        meta: dict[str, Any] = json.loads(self._store.local(outcome.files["model_meta"]).read_bytes())
        confidence = (outcome.report or {}).get("confidence")
        return Version(
            name=request.model,
            number=number,
            job=request.id,
            **{each: getattr(request, each) for each in ("dataset", "annotations", "algorithm", "options", "text")},
            classes=meta["classes"],
            label_kind="several" if "thresholds" in (meta.get("calibration") or {}) else "single",
            kind=meta.get("vocabulary", {}).get("kind", "vectors"),
            n_features=meta["n_features"],
            facts=meta.get("facts", {}),
            objective=outcome.objective,
            status=outcome.status,
            comparison=outcome.comparison,
            held_out=outcome.held_out,
            confidence=confidence if confidence in get_args(ConfidenceLevel) else None,
            created_at=datetime.now(UTC),
            files=_files_of(outcome),
        )

    def files_of(self, job: Job) -> dict[str, File]:
        """The files of a job that its version names, a deleted one, too: its deletion may be undone."""
        return _files_of(job.outcome) if job.version is not None and job.outcome else {}

    def held_out(self, version: Version) -> "LeftOut | None":
        """The probabilities of labels that the training left out, None without any; raises NotFound."""
        if "held_out" not in version.files:
            return None
        from safetensors.numpy import load_file

        arrays = load_file(self._local(version, "held_out"))
        return LeftOut(arrays["positions"], arrays["probabilities"])

    def _local(self, version: Version, kind: str) -> Path:
        """A local copy of a file of a version; raises NotFound if it was deleted meanwhile."""
        try:
            return self._store.local(version.files[kind])
        except KeyMissing:
            raise NotFound("model version", f"{version.name}/{version.number}") from None

    def _refuse_if_named(self, name: str, number: int, needed: Needed) -> None:
        """Raise Conflict if an alias or an unfinished job names a version."""
        # in this order: an alias exists before its mark is removed
        if self._aliases.being_set(name, number):
            raise Conflict(f"an alias is being set to version {number} of model {name!r}")
        for alias, named in self._aliases.readable(name):
            if named == number:
                raise Conflict(f"version {number} of model {name!r} has the alias {alias!r}")
        self._refuse_if_needed(name, [number], needed)

    def _refuse_if_needed(self, name: str, numbers: Collection[int], needed: Needed) -> None:
        """Raise Conflict if an unfinished job starts from one of these versions."""
        job = needed(name, numbers)
        if job is not None and job.request.start is not None:
            number = job.request.start.version
            raise Conflict(
                f"version {number} of model {name!r} is needed by job {job.request.id!r}, which is {job.state.value}"
            )

    def _remove(self, name: str, numbers: Collection[int], refuse: Callable[[list[int]], None]) -> list[int]:
        """Mark versions as deleted, then remove their files, unless ``refuse`` raises; returns those deleted now."""
        marked = [number for number in numbers if self._mark_deleted(name, number)]
        try:
            # from now on no alias and no job can name the versions; one may have done so just before
            if marked:
                refuse(marked)
        except BaseException:
            for number in marked:
                self._store.delete(_deleted_key(name, number))
            raise
        for number in marked:
            self._delete_files(name, number)
        return marked

    def _mark_deleted(self, name: str, number: int) -> bool:
        """Record the deletion of a version; false if it was deleted before."""
        return json_records.create(self._store, _deleted_key(name, number), _Deletion(deleted_at=datetime.now(UTC)))

    def _is_whole(self, version: Version) -> bool:
        return all(self._store.exists(file.key) for file in version.files.values())

    def _delete_files(self, name: str, number: int) -> None:
        version = self._find_readable(name, number)
        for file in () if version is None else version.files.values():
            self._store.delete(file.key)

    def _read(self, name: str, number: int) -> Version:
        """The cached record of a version, deleted or not: it never changes. Raises KeyMissing, StoreDamaged."""
        version = self._versions.get((name, number))
        if version is None:
            version = json_records.read(self._store, _version_key(name, number), Version)
            self._versions[name, number] = version
        return version

    def _find_readable(self, name: str, number: int) -> Version | None:
        """Record of a version, deleted or not; None if there is none that can be read."""
        try:
            return self._read(name, number)
        except (KeyMissing, StoreDamaged):
            return None

    def _numbers(self, name: str) -> list[int]:
        """Numbers of the versions that are not deleted, ascending."""
        if not is_name(name):
            return []
        return sorted(numbers_in(self._store.children(f"models/{name}/versions")) - self._deleted_numbers(name))

    def _existing(self, name: str) -> list[int]:
        """Numbers of the versions that are not deleted, ascending; raises NotFound if there is none."""
        numbers = self._numbers(name)
        if not numbers:
            raise NotFound("model", name)
        return numbers

    def _served(self, name: str) -> Version:
        """The newest version that is not deleted and takes over; if the others were deleted, the newest that is left.
        Raises NotFound.

        A damaged version is passed over, so that the model goes on answering; the answer has the number of the version.
        """
        newest = self.newest(name)
        # records are cached, so nothing is listed
        for number in range(newest, 0, -1):
            version = self._find_readable(name, number)
            if version is not None and version.takes_over and not self.deleted(name, number):
                return version
        return self._read(name, newest)

    def _deleted_numbers(self, name: str) -> set[int]:
        return numbers_in(self._store.children(f"models/{name}/deleted"))


def _files_of(outcome: Outcome) -> dict[str, File]:
    return {kind: outcome.files[kind] for kind in _FILES if kind in outcome.files}


def _version_key(name: str, number: int) -> str:
    return f"models/{name}/versions/{number}.json"


def _deleted_key(name: str, number: int) -> str:
    return f"models/{name}/deleted/{number}.json"
