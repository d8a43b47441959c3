"""Votes for the classes of documents, and the weights of their labels."""

import numpy as np
import pytest

from core.documents.votes import Votes, checked_weights
from core.errors import InvalidDocuments

VOTES = Votes(
    ["model", "rule"],
    ["ham", "spam"],
    np.array([0, 3, 3, 4]),
    np.array([0, 0, 1, 0], np.int32),
    np.array([0, 1, 1, 1], np.int32),
    np.array([0.25, 0.5, 1.0, 0.5]),
)


def test_votes_are_read_by_document_and_a_sure_one_is_its_class() -> None:
    assert list(VOTES.by_document()) == [
        {"model": {"ham": 0.25, "spam": 0.5}, "rule": "spam"},
        {},
        {"model": {"spam": 0.5}},
    ]
    assert VOTES.owners.tolist() == [0, 0, 0, 2]


def test_documents_are_taken_in_any_order() -> None:
    taken = VOTES.taken(np.array([2, 1, 0]))
    assert list(taken.by_document()) == list(VOTES.by_document())[::-1]
    assert taken.n_rows == 3


@pytest.mark.parametrize(
    ("weights", "detail"),
    [
        ([1.0, -0.5, 1.0], "-0.5 is no weight"),
        ([1.0, np.nan, 1.0], "nan is no weight"),
        ([1.0, np.inf, 1.0], "inf is no weight"),
        ([1e308, 1e308, 1.0], r"1e\+308 is 0 as a part of all weights, inf"),
        ([1e300, 0.0, 1e-300], r"1e-300 is 0 as a part of all weights, 1e\+300"),
        ([1.0], "1 given for 3 documents"),
    ],
)
def test_odd_weights_are_refused(weights: list[float], detail: str) -> None:
    with pytest.raises(InvalidDocuments, match=detail) as caught:
        checked_weights(np.array(weights), 3)
    assert caught.value.faults[0].field == "weight"


def test_weights_are_one_where_none_are_given() -> None:
    assert checked_weights(None, 2).tolist() == [1.0, 1.0]
    assert checked_weights(np.array([0.0, 2.5]), 2).tolist() == [0.0, 2.5]
