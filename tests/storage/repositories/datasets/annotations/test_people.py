"""What a training learns from people who differ."""

from typing import Any

import numpy as np

from storage.repositories.datasets import Datasets, Documents
from storage.store import Store
from tests.storage.repositories.datasets.annotations.test_log import given
from tests.stores import make_dataset
from tests.there import there

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


def labels(documents: Documents, positions: list[int]) -> list[Any]:
    return [next(iter(own), None) for own in documents.given(np.array(positions))]


def test_where_nobody_differs_labels_are_labels(store: Store) -> None:
    documents = opened(store, {0: {"ann": "new", "bob": "new"}, 1: {"ann": "other"}})
    assert (documents.votes, documents.by_voters) == (None, None)
    assert labels(documents, [0, 1]) == ["new", "other"]


def test_answers_that_differ_are_votes(store: Store) -> None:
    agreed: Answers = {position: {"ann": "new", "bob": "new"} for position in range(3, 9)}
    answers: Answers = {0: {"ann": "new", "bob": "odd"}, 1: {"ann": "new"}, 2: {"ann": "other", "": "new"}, **agreed}
    documents = opened(store, answers, {2: {"cleo": "other"}})
    votes = there(documents.votes)
    assert labels(documents, [0, 1, 2, 3]) == [None, "new", "other", "new"]
    assert np.flatnonzero(there(documents.by_voters)).tolist() == [1, *range(3, 9)]
    cast = list(votes.by_document())
    assert cast[:4] == [answers[0], answers[1], answers[2], answers[3]]
    assert "odd" in documents.classes
    assert votes.classes == documents.classes


def test_who_is_known_to_err_gives_votes_alone(store: Store) -> None:
    """Bob differs from ann and cleo, who agree, on half of the documents."""
    shared: Answers = {place: {"ann": "new", "bob": ["new", "odd"][place % 2], "cleo": "new"} for place in range(16)}
    documents = opened(store, {**shared, 16: {"ann": "other"}, 17: {"bob": "other"}})
    assert labels(documents, [0, 1, 16, 17]) == ["new", None, "other", None]
    assert list(there(documents.votes).by_document())[17] == {"bob": "other"}


def test_labels_of_one_class_alone_are_the_labels_of_most(store: Store) -> None:
    known = np.flatnonzero(Datasets(store).open(make_dataset(store).id).class_indices >= 0).tolist()
    documents = opened(store, {place: {"ann": "new", **({"bob": "odd"} if place else {})} for place in known})
    assert documents.votes is None
    assert None not in labels(documents, known)
