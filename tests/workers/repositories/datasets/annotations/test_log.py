"""The labels of documents after people have answered."""

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from tests.workers.conftest import make_dataset
from workers.contract import Annotations
from workers.errors import StoreDamaged
from workers.repositories.datasets import Datasets, NewAnnotation
from workers.repositories.datasets.annotations.log import AnnotationLog
from workers.store import Store, records


def given(id: str, document: str, label: Any = None, action: Any = "label", **fields: Any) -> NewAnnotation:
    return NewAnnotation(id, document, action, label, fields.get("drawn"), fields.get("by"), None, datetime.now(UTC))


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
    entries = [given(f"a{position}", documents.ids.at([position])[0], "all") for position in np.flatnonzero(documents.class_indices >= 0).tolist()]
    datasets.annotate(dataset, entries)
    assert datasets.open(dataset, len(entries)).classes == ["all"]


def test_a_log_with_a_missing_record_is_damaged(any_store: Store) -> None:
    datasets = Datasets(any_store)
    dataset = make_dataset(any_store).id
    ids = list(datasets.ids(dataset))
    for number in range(3):
        datasets.annotate(dataset, [given(str(number), ids[0], "new")])
    any_store.delete(f"datasets/{dataset}/annotations/0000000002.json")
    with pytest.raises(StoreDamaged):
        AnnotationLog(any_store, dataset).refreshed()


def test_the_loser_of_a_race_appends_what_is_left(any_store: Store) -> None:
    datasets, others = Datasets(any_store), Datasets(any_store)
    dataset = make_dataset(any_store).id
    ids = list(datasets.ids(dataset))
    assert datasets.annotate(dataset, [given("1", ids[0], "new")]) == (1, 1)
    assert others.annotate(dataset, [given("1", ids[0], "new"), given("2", ids[1], "new")]) == (2, 1)
    assert datasets.annotate(dataset, [given("2", ids[1], "new"), given("3", ids[1], "new")]) == (3, 1)
    found = records.read(any_store, f"datasets/{dataset}/annotations/0000000003.json", Annotations)
    assert [entry.id for entry in found.entries] == ["3"]
