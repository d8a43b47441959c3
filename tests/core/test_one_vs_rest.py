"""Two-class problems of some classes."""

import numpy as np
import pytest

from core.one_vs_rest import column_of, labels_of, n_classes_of, n_problems, own_scores, phases_of, positives_of
from core.progress import Phase


@pytest.mark.parametrize(("n_classes", "positives"), [(2, [1]), (3, [0, 1, 2]), (5, [0, 1, 2, 3, 4])])
def test_two_classes_make_one_problem_and_more_make_one_each(n_classes: int, positives: list[int]) -> None:
    assert positives_of(n_classes) == positives
    assert n_problems(n_classes) == len(positives)
    assert n_classes_of(len(positives)) == n_classes
    assert [positives[column_of(class_index, len(positives))] for class_index in range(n_classes)] == (
        positives if n_classes > 2 else [1, 1]
    )


def test_phases_are_told_apart_where_there_are_several() -> None:
    assert phases_of(["a", "b"]) == [Phase()]
    assert [phase.label for phase in phases_of([1, 2, 3])] == [1, 2, 3]


def test_labels_and_their_own_scores() -> None:
    one, three = np.array([[-1.0], [0.0], [2.0]]), np.array([[0.0, 3.0, 3.0], [-1.0, -2.0, -0.5]])
    assert labels_of(one).tolist() == [0, 0, 1]
    assert own_scores(one, labels_of(one)).tolist() == [-1.0, 0.0, 2.0]
    assert labels_of(three).tolist() == [1, 2]
    assert own_scores(three, labels_of(three)).tolist() == [3.0, -0.5]
