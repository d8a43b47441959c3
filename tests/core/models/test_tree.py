"""Trees of labels: probabilities add up, answers are as deep as they are sure, and measures are those by hand."""

import numpy as np
import pytest

from core.errors import InvalidOption
from core.models.tree import LabelTree, check_tree

CLASSES = ["art", "sport", "sport/football", "sport/tennis/clay", "sport/tennis/grass"]
TREE = LabelTree(CLASSES)
LIKELY = np.array(
    [
        [0.02, 0.0, 0.95, 0.02, 0.01],  # football, surely
        [0.05, 0.05, 0.05, 0.45, 0.40],  # tennis, whatever the court
        [0.10, 0.00, 0.50, 0.20, 0.20],  # sport
        [0.60, 0.10, 0.10, 0.10, 0.10],  # art, the likeliest however unsure
        [0.05, 0.90, 0.02, 0.02, 0.01],  # labeled at an inner node: some kind of sport
    ]
)


def test_probabilities_add_up_along_the_tree() -> None:
    assert TREE.nodes == ["art", "sport", "sport/football", "sport/tennis", "sport/tennis/clay", "sport/tennis/grass"]
    of_nodes = TREE.probabilities(LIKELY)
    assert of_nodes[:, :2].sum(axis=1) == pytest.approx(np.ones(5))
    assert of_nodes[:, 1] == pytest.approx(LIKELY[:, 1:].sum(axis=1))
    assert of_nodes[:, 3] == pytest.approx(of_nodes[:, 4] + of_nodes[:, 5])


def test_a_label_that_was_left_short_counts_for_those_below_it() -> None:
    of_nodes = TREE.probabilities(LIKELY)
    assert of_nodes[:, 2] + of_nodes[:, 3] == pytest.approx(of_nodes[:, 1])
    assert of_nodes[4, 2:] == pytest.approx(np.array([0.02, 0.03, 0.02, 0.01]) * 0.95 / 0.05)
    deep = LabelTree(["a", "a/b", "a/b/c", "a/d"])
    assert deep.probabilities(np.array([[0.4, 0.2, 0.1, 0.3], [1.0, 0.0, 0.0, 0.0]])) == pytest.approx(
        np.array([[1.0, 0.5, 0.5, 0.5], [1.0, 0.0, 0.0, 0.0]])
    )


def test_answers_go_as_deep_as_they_are_sure() -> None:
    told = TREE.told(LIKELY)
    assert [label for label, _ in told] == ["sport/football", "sport/tennis", "sport", "art", "sport"]
    assert told[1][1] == pytest.approx({"sport": 0.95, "sport/tennis": 0.85 * 0.95 / 0.9})
    assert TREE.nodes[TREE.answers(TREE.probabilities(LIKELY), 0.0)[1]] == "sport/tennis/clay"


def test_an_answer_below_a_label_that_was_left_short_is_right() -> None:
    found = TREE.report(LIKELY[:1], np.array([1]))
    assert (found["precision"], found["recall"], found["leaf_error"]) == (1.0, 1.0, None)
    assert all(point["right"] == point["whole"] == 1.0 for point in found["curve"])


def test_measures_are_those_by_hand() -> None:
    truth = np.array([2, 3, 3, 1, 2])
    found = TREE.report(LIKELY, truth)
    # paths given: 2, 2, 1, 1, 1 nodes; own: 2, 3, 3, 1, 2; in both: 2, 2, 1, 0, 1
    assert (found["precision"], found["recall"]) == (6 / 7, 6 / 11)
    assert found["f1"] == pytest.approx(2 * (6 / 7) * (6 / 11) / (6 / 7 + 6 / 11))
    # of the four that are labeled to the end, the third is taken for football
    assert found["leaf_error"] == 1 / 4
    at_80 = next(point for point in found["curve"] if point["sure"] == 0.8)
    assert at_80 == {"sure": 0.8, "right": 4 / 5, "depth": 7 / 5, "whole": 1 / 5}


@pytest.mark.parametrize(
    ("classes", "several", "words"),
    [
        (["a", "b"], False, "no label has steps"),
        (["a/b", "a//c"], False, "'a//c' has an empty step"),
        (["a/", "b"], False, "'a/' has an empty step"),
        (["a/b", "b"], True, "give each document the labels above its own, too"),
    ],
)
def test_what_makes_no_tree_is_refused(classes: list[str], several: bool, words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        check_tree(classes, several=several)
