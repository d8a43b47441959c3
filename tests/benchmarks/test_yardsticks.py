"""The yardsticks: their measures are right."""

import numpy as np
import pytest

from benchmarks.papers import Draw, Run, trained
from benchmarks.yardsticks import METHODS, moons, objective_of, true_objective
from core.registry import ALGORITHMS
from tests.core.problems import rows_of


def test_moons_have_one_label_each_and_the_draws_differ() -> None:
    draws = moons()
    assert len({tuple(draw.labeled) for draw in draws}) > 15
    assert all(sorted(draw.y[draw.labeled]) == [-1, 1] for draw in draws)


def test_methods_take_their_options() -> None:
    for name, options in METHODS.items():
        ALGORITHMS[name].options.parse(options)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_labels_have_the_objective_of_the_true_ones(seed: int) -> None:
    """Annealing on clusters far apart ends at the true labels, and so at their objective."""
    rng = np.random.default_rng(seed)
    truth = np.where(np.arange(40) % 2 == 0, 1, -1)
    draw = Draw(rows_of(rng.standard_normal((40, 4)) + 4 * truth[:, None]), truth, np.arange(10))
    training, error = trained(Run("", "", "kernel_da", METHODS["kernel_da"], "", fractions=True), draw)
    assert error == 0
    assert training.objective == pytest.approx(true_objective(draw), rel=1e-3)
    turned = truth > 0
    turned[20] = not turned[20]
    assert objective_of(draw.rows, turned, draw.labeled) > true_objective(draw)
