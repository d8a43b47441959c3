"""Digests of documents depend on the documents alone."""

import numpy as np

from core.documents.kinds import NamedRows, Rows, TextRows, row_digests
from core.documents.rows import SparseRows
from tests.stores import rows


def digests(given: Rows, *positions: int) -> list[bytes]:
    return list(row_digests(given, np.array(positions, np.int64)))


def test_texts() -> None:
    here, there = TextRows.of(["a goal", "a vote", "", "a goal"]), TextRows.of(["", "a vote"])
    first, vote, empty, again = digests(here, 0, 1, 2, 3)
    assert first == again
    assert len({first, vote, empty}) == 3
    assert digests(there, 1, 0) == [vote, empty]
    assert digests(here.taken(np.array([2, 1])), 0, 1) == [empty, vote]


def test_vectors() -> None:
    here, there = (
        rows({0: 1.0, 3: 2.0}, {0: 1.0}, {0: 2.0}, n_features=9),
        rows({1: 1.0}, {0: 1.0, 3: 2.0}, n_features=4),
    )
    assert digests(here, 0) == digests(there, 1)
    assert len(set(digests(here, 0, 1, 2) + digests(there, 0))) == 4


def test_named_features_whatever_their_columns() -> None:
    def named(names: list[str], given: SparseRows) -> NamedRows:
        return NamedRows(given, names)

    here, there = (
        named(["goal", "vote"], rows({0: 1.0, 1: 2.0}, {1: 2.0})),
        named(["vote", "x", "goal"], rows({1: 1.0}, {0: 2.0, 2: 1.0})),
    )
    assert digests(here, 0) == digests(there, 1)
    assert len(set(digests(here, 0, 1) + digests(there, 0))) == 3
