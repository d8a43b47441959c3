"""Labels to doubt."""

import numpy as np

from core.evaluation.doubts import doubtful


def test_the_largest_margin_comes_first_and_equals_in_their_order() -> None:
    probabilities = np.array([[0.4, 0.6], [0.1, 0.9], [0.9, 0.1], [0.4, 0.6], [0.5, 0.5]])
    assert doubtful(probabilities, np.array([0, 0, 0, 0, 1])).tolist() == [1, 0, 3]


def test_what_is_likeliest_is_not_doubted() -> None:
    assert doubtful(np.eye(3), np.arange(3)).tolist() == []
    assert doubtful(np.zeros((0, 3)), np.zeros(0, int)).tolist() == []
