"""Datasets after an interrupted making or deletion, or one by two processes at once: found by
``benchmarks.simulation``.
"""

from functools import partial

import pytest

from storage.errors import StoreUnavailable
from storage.names import new_id
from storage.records import Dataset
from storage.repositories.datasets import Datasets
from storage.repositories.deletions import Deletions
from storage.store import Store
from storage.store.folder import FolderStore
from tests.calls import meanwhile
from tests.stores import make_dataset


@pytest.mark.parametrize("relabeled", [False, True])
def test_a_dataset_whose_manifest_was_stored_without_a_reply_is_whole_or_gone(
    store: Store, monkeypatch: pytest.MonkeyPatch, relabeled: bool
) -> None:
    base, create = make_dataset(store), FolderStore.create

    def without_reply(self: FolderStore, key: str, data: bytes) -> bool:
        created = create(self, key, data)
        if key.endswith("manifest.json"):
            raise StoreUnavailable("the reply was lost")
        return created

    deleted: list[str] = []
    monkeypatch.setattr(FolderStore, "create", without_reply)
    monkeypatch.setattr(FolderStore, "delete", lambda self, prefix: deleted.append(prefix))
    make = partial(Datasets(store).relabel, base.id, {}) if relabeled else partial(make_dataset, store)
    with pytest.raises(StoreUnavailable, match="the reply was lost"):
        make()
    assert deleted[0].endswith("/manifest.json"), "what is without its files must not be seen"
    assert deleted[1] == deleted[0].removesuffix("/manifest.json")


def test_a_deletion_that_another_process_has_ended_is_decided_no_more(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    deletions = Deletions(store)
    mark = deletions.begin(new_id("ds"))
    assert deletions.decide(mark, delete=True)
    meanwhile(monkeypatch, FolderStore, "read", lambda: deletions.end(mark))
    assert not deletions.decide(mark, delete=False)


def test_documents_stay_whose_last_dataset_is_relabeled_while_another_is_deleted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = Datasets(store, abandoned_seconds=0.0)
    base = make_dataset(store)
    middle, other = datasets.relabel(base.id, {}), datasets.relabel(base.id, {})
    datasets.delete(base.id)
    made: list[Dataset] = []

    def replace_it() -> None:
        made.append(Datasets(store).relabel(middle.id, {}))
        Datasets(store).delete(middle.id)

    manifest = f"datasets/{middle.id}/manifest.json"
    meanwhile(monkeypatch, FolderStore, "exists", replace_it, where=lambda _, key: key == manifest)
    datasets.delete(other.id)
    assert made
    assert len(datasets.open(made[0].id).class_indices) == base.n_documents


@pytest.mark.parametrize("late", [False, True])
def test_an_upload_whose_files_another_took_for_abandoned_is_not_promised(
    store: Store, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """By a clock that is ahead by a day, an upload of an hour is one."""
    create = FolderStore.create

    def collected_meanwhile(self: FolderStore, key: str, data: bytes) -> bool:
        if late:
            create(self, key, data)
        if key.endswith("manifest.json"):
            store.delete(key.rpartition("/")[0])
        return late or create(self, key, data)

    monkeypatch.setattr(FolderStore, "create", collected_meanwhile)
    with pytest.raises(StoreUnavailable, match="was removed meanwhile, as if abandoned; is a clock ahead by a day"):
        make_dataset(store)
    assert store.children("datasets") == []
