"""Deletions of datasets that are cut short, slow, or taken for dead."""

from typing import Any

import pytest

from storage.errors import Conflict
from storage.records import JobDraft
from storage.repositories.datasets import Datasets
from storage.repositories.jobs import Jobs
from storage.store import Store
from tests.calls import meanwhile
from tests.stores import later, make_dataset, submit


class Died(BaseException):
    """The gateway was killed here."""


def cut_short(store: Store, id: str, step: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Delete a dataset by a gateway that is killed at its ``step``-th write; returns whether it got that far."""
    count = 0
    originals = {name: getattr(type(store), name) for name in ("create", "delete")}

    def counted(name: str) -> Any:
        def act(self: Store, *arguments: Any) -> Any:
            nonlocal count
            count += 1
            if count >= step:
                raise Died
            return originals[name](self, *arguments)

        return act

    with monkeypatch.context() as patch:
        for name in originals:
            patch.setattr(type(store), name, counted(name))
        try:
            Datasets(store).delete(id)
        except Died:
            return True
    return False


@pytest.mark.parametrize("step", range(1, 12))
def test_a_deletion_cut_short_anywhere_is_undone_or_finished_within_seconds(
    store: Store, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    id, datasets = make_dataset(store).id, Datasets(store)
    if not cut_short(store, id, step, monkeypatch):
        assert store.children("datasets") == []
        return
    datasets.recover_deletions()
    with later(monkeypatch, 12):
        datasets.recover_deletions()
    if store.exists(f"datasets/{id}/manifest.json"):
        assert Jobs(store).create(JobDraft(dataset=id, model="m", algorithm="svm"))[1]
        assert list(datasets.open(id).class_indices)
    else:
        assert store.children("datasets") == []
    assert [name for name in store.children("deleting") if not name.endswith(".decided")] == []


def test_a_deletion_that_still_lives_is_left_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    id = make_dataset(store).id
    meanwhile(monkeypatch, Jobs, "unfinished_job_of", Datasets(store).recover_deletions)
    Datasets(store).delete(id)
    assert store.children("datasets") == []


def test_a_deletion_that_was_taken_for_dead_is_told_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    id, other = make_dataset(store).id, Datasets(store)

    def recover() -> None:
        other.recover_deletions()
        with later(monkeypatch, 12):
            other.recover_deletions()
        submit(store, dataset=id)

    meanwhile(monkeypatch, Jobs, "unfinished_job_of", recover, after=True)
    with pytest.raises(Conflict, match="took too long"):
        Datasets(store).delete(id)
    assert Datasets(store).get(id).id == id
    other.remove_abandoned()
    with later(monkeypatch, 100_000):
        other.remove_abandoned()
    assert store.children("deleting") == []
