"""The yardsticks: their measures are right."""

import numpy as np
import pytest

from benchmarks.papers import Draw, Run, trained
from benchmarks.yardsticks import METHODS, SUPERVISED, moons, true_objective
from core.registry import ALGORITHMS
from tests.core.problems import rows_of


def test_moons_have_one_label_each_and_the_draws_differ() -> None:
    draws = moons()
    assert len({tuple(draw.labeled) for draw in draws}) > 15
    assert all(sorted(draw.y[draw.labeled]) == [-1, 1] for draw in draws)


def test_methods_take_their_options() -> None:
    for name, options in METHODS.items():
        ALGORITHMS[name].options.parse(options)


@pytest.mark.parametrize("method", SUPERVISED)
@pytest.mark.parametrize("seed", range(3))
def test_no_other_labels_have_the_objective_of_the_true_ones(seed: int, method: str) -> None:
    """On clusters far apart a method ends at the true labels, and so near their objective."""
    rng = np.random.default_rng(seed)
    truth = np.where(np.arange(40) % 2 == 0, 1, -1)
    draw = Draw(rows_of(rng.standard_normal((40, 4)) + 4 * truth[:, None]), truth, np.arange(10))
    training, error = trained(Run("", "", method, METHODS[method], "", fractions=True), draw)
    assert error == 0
    assert training.objective == pytest.approx(true_objective(method, draw), rel=2e-2)
    turned = truth.copy()
    turned[20] *= -1
    assert true_objective(method, draw._replace(y=turned)) > true_objective(method, draw)
