"""Votes and weights: stored beside the labels, kept by relabelings."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from storage.errors import LimitExceeded
from storage.process.settings import Settings
from storage.repositories.datasets import Batch, Datasets
from storage.store import Store
from tests.storage.repositories.datasets.files.refusals import refusal
from tests.stores import make_dataset, rows
from tests.there import there

VOTES: list[Mapping[str, Any] | None] = [
    {"rule": "spam", "model": {"spam": 0.75, "ham": 0.25}},
    None,
    {"rule": "ham", "ann": "ham"},
]


def batch(votes: Any = VOTES, labels: Any = ("spam", None, None), weights: Any = None, ids: Any = None) -> Batch:
    features = [{position % 9: 1.0} for position in range(len(votes))]
    return Batch(
        rows(*features, n_features=9),
        labels[: len(votes)],
        ids or [f"d{position}" for position in range(len(votes))],
        votes=votes,
        weights=None if weights is None else np.array(weights),
    )


def votes_of(store: Store, id: str) -> list[dict[str, Any]]:
    return list(there(Datasets(store).open(id).votes).by_document())


def test_votes_come_back_as_they_were_given(store: Store) -> None:
    made = make_dataset(store, [batch()])
    assert votes_of(store, made.id) == [each or {} for each in VOTES]
    assert made.voters == {"ann": 1, "model": 1, "rule": 2}
    assert made.voted == ["ham", "spam"]
    assert made.classes == [("ham", 0), ("spam", 1)]
    assert "class 'ham' has no labeled document" in made.warnings


def test_votes_without_labels_say_what_the_classes_are(store: Store) -> None:
    made = make_dataset(store, [batch(labels=[None] * 3)])
    assert (made.classes, made.n_labeled) == ([("ham", 0), ("spam", 0)], 0)
    assert votes_of(store, made.id)[2] == {"rule": "ham", "ann": "ham"}


def test_the_order_of_voters_and_batches_changes_no_byte(store: Store) -> None:
    one = make_dataset(store, [batch()])
    turned = [None if each is None else dict(reversed([*each.items()])) for each in VOTES]
    assert make_dataset(store, [batch(turned)]).sha256 == one.sha256
    unvoted = Batch(rows({7: 1.0}, n_features=9), ["ham"], ["z"])
    assert votes_of(store, make_dataset(store, [unvoted, batch(), unvoted._replace(ids=["y"])]).id) == [
        {},
        *(each or {} for each in VOTES),
        {},
    ]
    renamed = [None if each is None else {f"{voter}s": vote for voter, vote in each.items()} for each in VOTES]
    assert make_dataset(store, [batch(renamed)]).sha256 != one.sha256


def test_classes_that_are_integers_are_texts_as_names(store: Store) -> None:
    made = make_dataset(store, [batch([{"m": {"1": 0.5, "-2": 0.5}}, {"m": 1, "n": -2}], [1, None])])
    assert votes_of(store, made.id) == [{"m": {-2: 0.5, 1: 0.5}}, {"m": 1, "n": -2}]


def test_without_votes_and_weights_there_are_no_files(store: Store) -> None:
    made = make_dataset(store, [batch([None], ["a"], [1.0])])
    assert sorted(made.files) == ["ids", "indices", "indptr", "labels", "values"]
    documents = Datasets(store).open(made.id)
    assert (documents.votes, documents.weights) == (None, None)


def test_weights_come_back(store: Store) -> None:
    made = make_dataset(store, [batch(weights=[1.0, 0.0, 2.5])])
    assert there(Datasets(store).open(made.id).weights).tolist() == [1.0, 0.0, 2.5]


@pytest.mark.parametrize(
    ("votes", "weight", "words"),
    [
        ({"": "a"}, 1.0, "no name of a voter"),
        ({"r" * 257: "a"}, 1.0, "no name of a voter"),
        ({"r": {}}, 1.0, "'r' names no class"),
        ({"r": {"a": 1.5}}, 1.0, "the probability 1.5"),
        ({"r": {"a": -0.1}}, 1.0, "the probability -0.1"),
        ({"r": {"a": float("nan")}}, 1.0, "from 0 to 1"),
        ({"r": {"a": True}}, 1.0, "from 0 to 1"),
        ({"r": {"a": 0.8, "b": 0.9}}, 1.0, "sum to 1.7; at most 1 is possible"),
        ({"r": 3}, 1.0, "all strings or all integers"),
        ({"r": ""}, 1.0, "1 to 256 characters"),
        ({"r": "spma"}, 1.0, "'r' votes for 'spma'.*did you mean 'spam'?"),
        (None, -1.0, "at least 0"),
        (None, float("nan"), "at least 0"),
        (None, float("inf"), "at least 0"),
    ],
)
def test_odd_votes_and_weights_are_refused(store: Store, votes: Any, weight: float, words: str) -> None:
    labeled = Batch(rows({0: 1.0}, n_features=9), ["spam"], ["first"])
    (fault,) = refusal(store, labeled, batch([votes], [None], [weight]))
    assert (fault.document, fault.field) == ("d0", "weight" if votes is None else "votes")
    assert re.search(words, fault.detail)


def test_a_class_that_two_voters_name_needs_no_label(store: Store) -> None:
    made = make_dataset(store, [batch([{"r": "eggs"}, {"s": "eggs"}], ["ham", None])])
    assert made.classes == [("eggs", 0), ("ham", 1)]


def test_a_voter_may_name_what_else_there_is_than_the_one_class_of_all_labels(store: Store) -> None:
    made = make_dataset(store, [batch([{"r": "eggs"}, None], ["ham", None])])
    assert made.classes == [("eggs", 0), ("ham", 1)]
    (fault,) = refusal(store, batch([{"r": "eggs"}, None, None], ["ham", "spam", None]))
    assert "which neither a label nor another voter names" in fault.detail


def test_probabilities_of_a_vote_are_rounded(store: Store) -> None:
    rounded = {"r": {"spam": 0.34, "ham": 0.34, "eggs": 0.34}, "s": {"eggs": 0.4}}
    made = make_dataset(store, [batch([rounded, rounded])])
    assert votes_of(store, made.id)[0] == rounded


def test_voters_are_bounded(store: Store) -> None:
    with (
        pytest.raises(LimitExceeded, match="voters"),
        Datasets(store, Settings(max_voters=2)).builder() as builder,
    ):
        builder.add(batch())


def test_many_votes_are_sorted_in_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.repositories.datasets.files.npy._ELEMENTS", 3)
    votes: Sequence[Any] = [{f"v{(7 * row + k) % 5}": "ab"[k % 2] for k in range(row % 4)} for row in range(20)]
    made = make_dataset(
        store, [batch(votes[:9], [None] * 9), batch(votes[9:], [None] * 11, ids=[f"e{k}" for k in range(11)])]
    )
    assert votes_of(store, made.id) == [dict(sorted(each.items())) for each in votes]


def test_votes_stay_when_labels_change(store: Store) -> None:
    made = make_dataset(store, [batch(weights=[1.0, 0.0, 2.5])])
    changed = Datasets(store).relabel(made.id, {"d0": None, "d1": "eggs"})
    assert changed.classes == [("eggs", 1), ("ham", 0), ("spam", 0)]
    assert votes_of(store, changed.id) == votes_of(store, made.id)
    again = Datasets(store).relabel(changed.id, {"d0": "spam", "d1": None})
    assert again.sha256 == made.sha256
    assert (again.voters, again.files["weights"]) == (made.voters, made.files["weights"])
