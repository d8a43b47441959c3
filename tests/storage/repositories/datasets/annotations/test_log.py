"""The labels of documents after people have answered; long logs, which are merged; people who differ."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from storage.errors import StoreDamaged, StoreFull
from storage.repositories.datasets import Datasets, Documents
from storage.repositories.datasets.annotations import log
from storage.repositories.datasets.annotations.answers import Annotation, Annotations
from storage.repositories.datasets.annotations.log import AnnotationLog
from storage.store import Store, json_records
from tests.storage.repositories.datasets.annotations.annotated import given, labels
from tests.stores import make_dataset
from tests.there import there


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


ENOUGH = 5
RECORDS = "datasets/ds-1/annotations"
MERGED = "datasets/ds-1/merged"


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are merged when there are few."""
    monkeypatch.setattr(log, "ENOUGH", ENOUGH)


def entries(*ids: str) -> list[Annotation]:
    return [
        Annotation(id=id, document="d", position=0, action="label", label="yes", at=datetime(2026, 1, 1, tzinfo=UTC))
        for id in ids
    ]


def filled(store: Store) -> AnnotationLog:
    """A log of thirteen entries, in records of one and of two in turn."""
    log = AnnotationLog(store, "ds-1")
    for first in range(0, 12, 3):
        log.append(entries(f"{first}"))
        log.append(entries(f"{first + 1}", f"{first + 2}"))
    log.append(entries("12"))
    return log


def ids(log: AnnotationLog) -> list[str]:
    return [entry.id for _, entry in log.between(0, 1000)]


@pytest.mark.usefixtures("few")
def test_merged_entries_are_read_instead_of_their_records(any_store: Store) -> None:
    expected = ids(filled(any_store))
    assert expected == [str(k) for k in range(13)]
    # records of 1, 2, 1 and 2 entries are enough together, and so are the next four
    assert any_store.children(MERGED) == ["0000000001.json", "0000000007.json"]
    last = any_store.children(RECORDS)[-1]
    for name in any_store.children(RECORDS)[:-1]:
        any_store.delete(f"{RECORDS}/{name}")
    fresh = AnnotationLog(any_store, "ds-1")
    assert ids(fresh) == expected
    assert fresh.append(entries("3", "new")) == (14, 1)
    assert [number for number, _ in fresh.between(12, 5)] == [13, 14]
    assert any_store.children(RECORDS)[0] == last


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("damaged", ["0000000001.json", "0000000007.json"])
def test_what_cannot_be_read_merged_is_read_from_its_records(any_store: Store, damaged: str) -> None:
    expected = ids(filled(any_store))
    any_store.replace(f"{MERGED}/{damaged}", b"{")
    assert ids(AnnotationLog(any_store, "ds-1")) == expected


@pytest.mark.usefixtures("few")
def test_a_log_of_an_earlier_version_is_merged_by_the_next_entry(any_store: Store) -> None:
    expected = ids(filled(any_store))
    before = {name: any_store.read(f"{MERGED}/{name}") for name in any_store.children(MERGED)}
    for name in before:
        any_store.delete(f"{MERGED}/{name}")
    log = AnnotationLog(any_store, "ds-1")
    log.append(entries("13"))
    assert {name: any_store.read(f"{MERGED}/{name}") for name in any_store.children(MERGED)} == before
    assert ids(AnnotationLog(any_store, "ds-1")) == [*expected, "13"]


@pytest.mark.usefixtures("few")
def test_nothing_is_merged_after_a_record_that_cannot_be_read(any_store: Store) -> None:
    log = AnnotationLog(any_store, "ds-1")
    log.append(entries("0"))
    log.append(entries("1"))
    any_store.replace(f"{RECORDS}/0000000001.json", b"{")
    fresh = AnnotationLog(any_store, "ds-1")
    fresh.append(entries(*(f"{k}" for k in range(2, 20))))
    assert any_store.children(MERGED) == []
    assert ids(fresh) == [f"{k}" for k in range(1, 20)]


@pytest.mark.usefixtures("few")
def test_an_answer_is_kept_where_there_is_no_room_to_merge(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    log, create = AnnotationLog(any_store, "ds-1"), any_store.create

    def full(key: str, data: bytes) -> bool:
        if key.startswith(MERGED):
            raise StoreFull("no room")
        return create(key, data)

    with monkeypatch.context() as patch:
        patch.setattr(any_store, "create", full)
        assert log.append(entries(*(f"{k}" for k in range(ENOUGH)))) == (ENOUGH, ENOUGH)
    assert any_store.children(MERGED) == []
    log.append(entries("later"))
    assert any_store.children(MERGED) == ["0000000001.json"]
    assert len(ids(AnnotationLog(any_store, "ds-1"))) == ENOUGH + 1


@pytest.mark.usefixtures("few")
def test_a_hundred_append_at_once_and_nothing_is_lost(store: Store) -> None:
    """Each with a log of its own, as in processes of their own; each sends every request twice."""

    def append(person: int) -> list[int]:
        log = AnnotationLog(store, "ds-1")
        sent = [entries(f"{person}-{k}", f"{person}-{k}b") for k in range(2)]
        return [log.append(each)[0] for each in sent for _ in range(2)]

    with ThreadPoolExecutor(100) as people:
        counts = list(people.map(append, range(100)))
    assert all(one <= other for each in counts for one, other in pairwise(each))
    found = ids(AnnotationLog(store, "ds-1"))
    assert Counter(found) == Counter(
        f"{person}-{k}{part}" for person in range(100) for k in range(2) for part in ("", "b")
    )
    assert len(store.children(MERGED)) == 400 // (ENOUGH + 1)


Answers = dict[int, dict[str, str]]


def opened(store: Store, answers: Answers, settled: Answers | None = None) -> Documents:
    """A dataset to train on, after these answers by position and person."""
    datasets = Datasets(store)
    dataset = make_dataset(store).id
    ids = list(datasets.ids(dataset))
    every = [("label", answers), ("settle", settled or {})]
    entries = [
        given(f"{action}-{position}-{by}", ids[position], label, action, by=by)
        for action, found in every
        for position, own in found.items()
        for by, label in own.items()
    ]
    datasets.annotate(dataset, entries)
    return datasets.open_to_train(dataset, len(entries))


def given_labels(documents: Documents, positions: list[int]) -> list[Any]:
    return [next(iter(own), None) for own in documents.given(np.array(positions))]


def test_where_nobody_differs_labels_are_labels(store: Store) -> None:
    documents = opened(store, {0: {"ann": "new", "bob": "new"}, 1: {"ann": "other"}})
    assert (documents.votes, documents.by_voters) == (None, None)
    assert given_labels(documents, [0, 1]) == ["new", "other"]


def test_answers_that_differ_are_votes(store: Store) -> None:
    agreed: Answers = {position: {"ann": "new", "bob": "new"} for position in range(3, 9)}
    answers: Answers = {0: {"ann": "new", "bob": "odd"}, 1: {"ann": "new"}, 2: {"ann": "other", "": "new"}, **agreed}
    documents = opened(store, answers, {2: {"cleo": "other"}})
    votes = there(documents.votes)
    assert given_labels(documents, [0, 1, 2, 3]) == [None, "new", "other", "new"]
    assert np.flatnonzero(there(documents.by_voters)).tolist() == [1, *range(3, 9)]
    cast = list(votes.by_document())
    assert cast[:4] == [answers[0], answers[1], answers[2], answers[3]]
    assert "odd" in documents.classes
    assert votes.classes == documents.classes


def test_who_is_known_to_err_gives_votes_alone(store: Store) -> None:
    """Bob differs from ann and cleo, who agree, on half of the documents."""
    shared: Answers = {place: {"ann": "new", "bob": ["new", "odd"][place % 2], "cleo": "new"} for place in range(16)}
    documents = opened(store, {**shared, 16: {"ann": "other"}, 17: {"bob": "other"}})
    assert given_labels(documents, [0, 1, 16, 17]) == ["new", None, "other", None]
    assert list(there(documents.votes).by_document())[17] == {"bob": "other"}


def test_labels_of_one_class_alone_are_the_labels_of_most(store: Store) -> None:
    known = np.flatnonzero(Datasets(store).open(make_dataset(store).id).class_indices >= 0).tolist()
    documents = opened(store, {place: {"ann": "new", **({"bob": "odd"} if place else {})} for place in known})
    assert documents.votes is None
    assert None not in given_labels(documents, known)
