"""Agreement of people, against published examples."""

import pytest

from core.evaluation.voting import cohen, krippendorff

_OBSERVERS = (
    "1 2 3 3 2 1 4 1 2 . . .",
    "1 2 3 3 2 2 4 1 2 5 . 3",
    ". 3 3 3 2 3 4 2 2 5 1 .",
    "1 2 3 3 2 4 4 1 2 5 1 .",
)
"""Krippendorff, Computing Krippendorff's alpha-reliability, 2011, section C: labels by person, dots where missing."""


def test_krippendorff_of_the_published_example() -> None:
    documents = [[label for label in each if label != "."] for each in zip(*map(str.split, _OBSERVERS), strict=True)]
    assert krippendorff(documents) == pytest.approx(0.743, abs=5e-4)


def test_cohen_of_a_table() -> None:
    labels = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    assert cohen(labels) == pytest.approx(0.4)


def test_those_who_agree_always_have_one() -> None:
    assert cohen([("a", "a"), ("b", "b")]) == 1.0
    assert krippendorff([["a", "a"], ["b", "b", "b"]]) == 1.0


def test_where_nothing_can_be_compared_there_is_none() -> None:
    assert cohen([]) is None
    assert cohen([("a", "a")] * 5) is None
    assert krippendorff([["a"], ["b"]]) is None
    assert krippendorff([["a", "a"], ["a", "a"]]) is None


def test_two_people_by_chance_have_about_zero() -> None:
    labels = [(one, other) for one in "ab" for other in "ab"] * 25
    assert cohen(labels) == 0.0
    assert krippendorff(labels) == pytest.approx(0.005, abs=1e-9)
