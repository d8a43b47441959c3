"""Deletions of datasets that are under way: marks that keep new jobs away, and decisions that make an interruption
harmless.

deleting/{dataset}.{mark}          a caller looks whether a job needs the dataset; a job that is stored later is refused
deleting/{dataset}.{mark}.decided  ``delete`` or ``keep``; the first that is created counts

1. The caller leaves a mark, then looks for jobs that need the dataset.
2. If it finds none it decides for ``delete``, removes the dataset, then mark and decision. Else it removes the mark.
3. A mark that another process has seen for ten seconds counts as abandoned. That process decides for ``keep``.
4. If ``delete`` was decided before, that process completes the deletion. Else it withdraws the mark; its caller, if
   it was only slow, learns so from the decision.
"""

from collections.abc import Iterator
from contextlib import suppress

from storage.names import is_id, new_id
from storage.repositories.sightings import Sightings
from storage.store import KeyMissing, Store

_ABANDONED_SECONDS = 10
_DECIDED = ".decided"


class Deletions:
    """The marks of a store, and the decisions on them."""

    def __init__(self, store: Store, sightings: Sightings | None = None) -> None:
        self._store = store
        self._sightings = sightings or Sightings()

    def pending(self, dataset: str) -> bool:
        """Whether a dataset is perhaps about to be deleted."""
        return any(name.startswith(f"{dataset}.") and not name.endswith(_DECIDED) for name in self._names())

    def begin(self, dataset: str) -> str:
        """Create a mark; returns its name."""
        mark = f"{dataset}.{new_id('deletion')}"
        self._store.create(f"deleting/{mark}", b"")
        return mark

    def decide(self, mark: str, delete: bool) -> bool:
        """Decide, unless it was decided before; returns whether the decision that counts is to delete."""
        key, decision = f"deleting/{mark}{_DECIDED}", b"delete" if delete else b"keep"
        if self._store.create(key, decision):
            return delete
        with suppress(KeyMissing):
            return self._store.read(key) == b"delete"
        return False  # another process has ended the deletion meanwhile

    def withdraw(self, mark: str) -> None:
        """Remove an abandoned mark, so that jobs are accepted again; the decision stays, for a caller that was only
        slow.
        """
        self._store.delete(f"deleting/{mark}")

    def end(self, mark: str) -> None:
        """Remove mark and decision of a deletion that was completed, or given up by its caller."""
        self.withdraw(mark)
        self._store.delete(f"deleting/{mark}{_DECIDED}")

    def overdue(self) -> Iterator[tuple[str, str]]:
        """Abandoned marks, each with its dataset."""
        for name in self._names():
            if not name.endswith(_DECIDED) and self._sightings.seconds(name) > _ABANDONED_SECONDS:
                yield name, name.partition(".")[0]

    def remove_abandoned(self, seconds: float) -> None:
        """Remove decisions that are older than this: no caller can look for them any more."""
        for name in self._names():
            if name.endswith(_DECIDED) and self._sightings.old(name.removesuffix(_DECIDED), seconds):
                self._store.delete(f"deleting/{name}")

    def _names(self) -> Iterator[str]:
        """Names of marks and decisions; other names are passed over."""
        for name in self._store.children("deleting"):
            dataset, _, mark = name.removesuffix(_DECIDED).partition(".")
            if is_id("ds", dataset) and is_id("deletion", mark):
                yield name
