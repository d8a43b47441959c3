"""Deletions of datasets that are under way: marks that keep new jobs away, and who may go on if one is cut short.

deleting/{dataset}.{mark}          somebody looks whether a job needs the dataset; a job that is stored later is refused
deleting/{dataset}.{mark}.decided  ``delete`` or ``keep``: the first to write it has decided what becomes of this deletion

Whoever deletes decides for ``delete`` once it has found no job. A deletion that is not decided after some seconds is taken for dead: whoever
finds it decides for ``keep``, and should its owner live after all, it is told so. One that was decided is finished by whoever finds it.
"""

from collections.abc import Iterator

from workers.names import new_id, older_than
from workers.store import Store

_ALIVE_SECONDS = 10
_DECIDED = ".decided"


class Deletions:
    """The marks of a store, and the decisions on them."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def pending(self, dataset: str) -> bool:
        """Whether a dataset is about to be deleted, perhaps."""
        return any(name.startswith(f"{dataset}.") and not name.endswith(_DECIDED) for name in self._store.children("deleting"))

    def begin(self, dataset: str) -> str:
        """Leave a mark; returns its name."""
        mark = f"{dataset}.{new_id('deletion')}"
        self._store.create(f"deleting/{mark}", b"")
        return mark

    def decide(self, mark: str, delete: bool) -> bool:
        """Decide, if nobody has; whether the decision, this or that of before, is to delete."""
        key, wish = f"deleting/{mark}{_DECIDED}", b"delete" if delete else b"keep"
        return delete if self._store.create(key, wish) else self._store.read(key) == b"delete"

    def withdraw(self, mark: str) -> None:
        """Remove a mark that is not one's own, so that jobs are taken again; the decision stays, for an owner that was only slow."""
        self._store.delete(f"deleting/{mark}")

    def end(self, mark: str) -> None:
        """Remove all of a deletion that was finished, or given up by its owner."""
        self.withdraw(mark)
        self._store.delete(f"deleting/{mark}{_DECIDED}")

    def overdue(self) -> Iterator[tuple[str, str]]:
        """Marks whose owners must be dead by now, each with its dataset."""
        for name in self._store.children("deleting"):
            if not name.endswith(_DECIDED) and older_than(name, _ALIVE_SECONDS):
                yield name, name.partition(".")[0]

    def remove_abandoned(self, seconds: float) -> None:
        """Remove decisions so old that nobody can ask for them any more."""
        for name in self._store.children("deleting"):
            if name.endswith(_DECIDED) and older_than(name.removesuffix(_DECIDED), seconds):
                self._store.delete(f"deleting/{name}")
