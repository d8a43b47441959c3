"""The labels of documents after people have answered."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from storage.errors import StoreDamaged
from storage.repositories.datasets import Datasets, NewAnnotation
from storage.repositories.datasets.annotations.answers import Annotations
from storage.repositories.datasets.annotations.log import AnnotationLog
from storage.store import Store, json_records
from tests.stores import make_dataset


def given(id: str, document: str, label: Any = None, action: Any = "label", **fields: Any) -> NewAnnotation:
    kind = "labels" if isinstance(label, tuple) else "label"
    return NewAnnotation(id=id, document=document, action=action, at=datetime.now(UTC), **fields, **{kind: label})


def labels(datasets: Datasets, dataset: str, annotations: int | None) -> list[Any]:
    documents = datasets.open(dataset, annotations)
    return [None if index < 0 else documents.classes[index] for index in documents.class_indices.tolist()]


def test_a_number_of_entries_always_means_the_same_labels(any_store: Store) -> None:
    datasets = Datasets(any_store)
    dataset = make_dataset(any_store).id
    before = labels(datasets, dataset, None)
    ids = list(datasets.ids(dataset))
    datasets.annotate(dataset, [given("1", ids[0], "new"), given("2", ids[1], "other")])
    assert labels(datasets, dataset, 2)[:2] == ["new", "other"]
    datasets.annotate(dataset, [given("3", ids[0], action="undo"), given("4", ids[1], "new")])
    assert labels(datasets, dataset, 0) == before
    assert labels(datasets, dataset, 1) == ["new", *before[1:]]
    assert labels(Datasets(any_store), dataset, 2)[:2] == ["new", "other"]
    assert labels(Datasets(any_store), dataset, 4)[:2] == [before[0], "new"]


def test_classes_that_nobody_means_any_more_are_gone(any_store: Store) -> None:
    datasets = Datasets(any_store)
    dataset = make_dataset(any_store).id
    documents = datasets.open(dataset)
    entries = [
        given(f"a{position}", documents.ids.taken([position])[0], "all")
        for position in np.flatnonzero(documents.class_indices >= 0).tolist()
    ]
    datasets.annotate(dataset, entries)
    assert datasets.open(dataset, len(entries)).classes == ["all"]


@pytest.fixture
def three(any_store: Store) -> tuple[str, list[str]]:
    """A dataset with three records of two entries each, and the keys of these."""
    datasets = Datasets(any_store)
    dataset = make_dataset(any_store).id
    ids = list(datasets.ids(dataset))
    for number in (1, 3, 5):
        datasets.annotate(
            dataset, [given(str(number), ids[number], "new"), given(str(number + 1), ids[number + 1], "new")]
        )
    return dataset, [f"datasets/{dataset}/annotations/000000000{number}.json" for number in (1, 3, 5)]


@pytest.mark.parametrize("missing", [False, True])
def test_a_record_that_cannot_be_read_is_named_and_the_others_go_on(
    any_store: Store, three: tuple[str, list[str]], missing: bool
) -> None:
    dataset, keys = three
    whole = any_store.read(keys[1])
    any_store.delete(keys[1])
    if not missing:
        any_store.create(keys[1], whole[:40])
    datasets = Datasets(any_store)
    log = datasets.log(dataset)
    assert log.refreshed() == 6, "the numbers of the others stay"
    assert [number for number, _ in log.between(0, 10)] == [1, 2, 5, 6]
    assert list(log.answers()) == [1, 2, 5, 6]
    assert log.changed() == 6, "unreadable entries are counted, too"
    assert list(any_store.damage.found) == [keys[1]]
    any_store.damage.check_again()
    assert list(any_store.damage.found) == [keys[1]]
    assert datasets.annotate(dataset, [given("7", next(iter(datasets.ids(dataset))), "new")]) == (7, 1)
    any_store.replace(keys[1], whole)
    any_store.damage.check_again()
    assert [entry.id for _, entry in log.between(0, 10)] == list("1234567"), "it was repaired"
    assert list(any_store.damage.found) == []


def test_nothing_is_appended_after_a_record_of_which_nobody_knows_how_long_it_is(
    any_store: Store, three: tuple[str, list[str]]
) -> None:
    dataset, keys = three
    datasets = Datasets(any_store)
    whole = {key: any_store.read(key) for key in keys[1:]}
    for key, data in whole.items():
        any_store.replace(key, data[:40])
    log = datasets.log(dataset)
    assert [entry.id for _, entry in log.between(0, 10)] == ["1", "2"]
    one = given("7", next(iter(datasets.ids(dataset))), "new")
    with pytest.raises(StoreDamaged, match=keys[1]):
        datasets.annotate(dataset, [one])
    assert set(any_store.damage.found) == set(whole)
    for key, data in whole.items():
        any_store.replace(key, data)
    assert datasets.annotate(dataset, [one]) == (7, 1)


def test_a_record_that_overlaps_another_is_damaged(any_store: Store, three: tuple[str, list[str]]) -> None:
    dataset, keys = three
    any_store.create(keys[0].replace("01.json", "02.json"), any_store.read(keys[0]))
    with pytest.raises(StoreDamaged):
        AnnotationLog(any_store, dataset).refreshed()


def test_the_loser_of_a_race_appends_what_is_left(any_store: Store) -> None:
    datasets, others = Datasets(any_store), Datasets(any_store)
    dataset = make_dataset(any_store).id
    ids = list(datasets.ids(dataset))
    assert datasets.annotate(dataset, [given("1", ids[0], "new")]) == (1, 1)
    assert others.annotate(dataset, [given("1", ids[0], "new"), given("2", ids[1], "new")]) == (2, 1)
    assert datasets.annotate(dataset, [given("2", ids[1], "new"), given("3", ids[1], "new")]) == (3, 1)
    found = json_records.read(any_store, f"datasets/{dataset}/annotations/0000000003.json", Annotations)
    assert [entry.id for entry in found.entries] == ["3"]
