"""Agreement of people, against published examples; what votes say beside a model, and what more of them are worth."""

import numpy as np
import pytest

from core.evaluation.voting import VoterRates, cohen, krippendorff
from tests.core.weak_supervision.voting import people, votes_of

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


REPORT = {
    "class_fractions": {"c0": 0.8, "c1": 0.2},
    "voters": {
        "voter-0": {"right": 0.8, "low": 0.7, "high": 0.9, "classes": {"c1": {"right": 0.9, "low": 0.8, "high": 1.0}}},
        "voter-1": {"right": 0.6, "low": 0.5, "high": 0.7, "classes": {}, "copies": {"voter-2": 1.0}},
        "voter-2": {"right": 0.6, "low": 0.5, "high": 0.7, "classes": {}, "copies": {"voter-1": 1.0}},
    },
}


def test_votes_multiply_the_odds_by_their_precision() -> None:
    rates = VoterRates.of(["c0", "c1"], REPORT)
    answers = np.array([[1, -1, -1], [0, -1, -1], [-1, 1, -1], [-1, 1, 1], [-1, -1, -1]])
    told = rates.told(np.tile([0.8, 0.2], (5, 1)), votes_of(answers, 2))
    odds = told[:, 1] / told[:, 0]
    np.testing.assert_allclose(odds[:2], [0.9 / 0.1, 0.2 / 0.8])
    # two who copy each other say what one says
    np.testing.assert_allclose(odds[3], 0.25 * (0.6 / 0.2) / (0.4 / 0.8))
    np.testing.assert_allclose(odds[4], 0.25)


@pytest.mark.parametrize("right", [0.65, 0.9])
def test_the_worth_is_how_many_documents_an_answer_sets_right(right: float) -> None:
    truth, n = np.random.default_rng(0), 200_000
    likely = truth.uniform(0.5, 1.0, n)
    labels = (truth.random(n) > likely).astype(np.int64)
    answers = people(labels, [right], seed=1)[:, 0]
    rates = VoterRates.of(["c0", "c1"], {"voters": {"v": {"right": right}}})
    worth = rates.worth("v", np.ones(n, np.int64), likely, 1 - likely)
    believed = np.where((answers == 1) & (worth > 0), 1, 0)
    gained = np.mean(believed == labels) - np.mean(labels == 0)
    assert gained == pytest.approx(np.maximum(worth, 0).mean(), abs=0.004)


def test_nothing_is_known_of_a_new_voter() -> None:
    rates = VoterRates.of(["c0", "c1"], None)
    assert rates.rates("new")[0] == {"right": 0.7, "low": 0.0, "high": 1.0}
