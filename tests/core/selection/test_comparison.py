"""Methods on one scale."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from core.selection.prediction import Judgement, judge
from core.validation.calibration import SLOPE


def scores_of(n_classes: int, gap: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    class_indices = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 60)])
    own = np.eye(n_classes)[class_indices] * gap + rng.standard_normal((len(class_indices), n_classes))
    return (own[:, 1:] - own[:, :1] if n_classes == 2 else own), class_indices


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_neither_scale_nor_threshold_nor_counts_decide(n_classes: int) -> None:
    scores, class_indices = scores_of(n_classes, 2.0)
    plain = judge(scores, class_indices)
    # a factor that is a whole number of steps of the slopes that are tried, so that the same one is found
    moved = judge(scores + np.linspace(3, -4, scores.shape[1]), class_indices)
    assert moved.log_likelihood == pytest.approx(plain.log_likelihood)
    assert moved.right == plain.right
    assert judge(100 * scores, class_indices).right == plain.right


def test_the_likelihood_is_that_of_the_best_slope() -> None:
    """Against SciPy's search, of even labels."""
    rng = np.random.default_rng(3)
    class_indices = np.repeat([0, 1, 2], 20)
    scores = 1.5 * np.eye(3)[class_indices] + rng.standard_normal((60, 3))
    middles = [(scores[class_indices == k, k].mean() + scores[class_indices != k, k].mean()) / 2 for k in range(3)]

    def value(step: float) -> float:
        logs = log_softmax(SLOPE * np.exp(step) * (scores - middles), axis=1)
        return float(-logs[np.arange(60), class_indices].sum() + 0.5 * (step / 0.7) ** 2)

    found = judge(scores, class_indices)
    assert found.log_likelihood == pytest.approx(
        -minimize_scalar(value, bounds=(-2.5, 2.5), method="bounded").fun, abs=0.05
    )
    assert found.chance == pytest.approx(-60 * np.log(3))
    assert found.likelier


def test_scores_of_nothing_are_no_likelier_than_chance() -> None:
    found = [
        judge(np.random.default_rng(seed).standard_normal((20, 1)), np.repeat([0, 1], 10)).likelier
        for seed in range(40)
    ]
    assert np.mean(found) < 0.3


def test_what_separates_better_is_likelier() -> None:
    found = [judge(*scores_of(2, gap)) for gap in (0.0, 1.0, 2.0, 4.0)]
    assert found == sorted(found, key=lambda each: each.log_likelihood)
    gained = [each.gained for each in found]
    assert gained == sorted(gained)
    assert gained[0] < 0.1
    assert 0.7 < gained[-1] < 1
    assert Judgement(0.0, -4 * np.log(2), 4).gained < 0.75, "four right labels prove little"
    assert Judgement(0.0, 0.0, 0).gained == 0


def test_no_label_counts_more_than_one() -> None:
    class_indices = np.repeat([0, 1], [30, 3])
    assert judge(np.zeros((33, 1)), class_indices).chance == pytest.approx(-6 * np.log(2))


def test_scores_that_are_no_numbers_are_the_worst() -> None:
    assert judge(np.array([[np.nan], [1.0]]), np.array([0, 1])).log_likelihood == -np.inf
    assert judge(np.zeros((0, 1)), np.zeros(0, int)) == Judgement(0.0, 0.0, 0)
    assert judge(np.arange(3.0)[:, None], np.zeros(3, int)) == Judgement(0.0, 0.0, 0), "labels of one class say nothing"
