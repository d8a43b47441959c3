"""The two-sided loss against its plain formula and finite differences; slopes after a step, also where a step jumps
over the whole margin.
"""

import numpy as np
import pytest

from core.losses.squared_hinge import SquaredHinge
from tests.core.problems import Array


def loss(scores: Array, positive: Array, negative: Array) -> float:
    return float(0.5 * (positive * np.maximum(0, 1 - scores) ** 2 + negative * np.maximum(0, 1 + scores) ** 2).sum())


def draw(seed: int) -> tuple[Array, Array, Array, Array]:
    """Scores on all pieces of the loss, costs, some 0 and some equal, a direction."""
    rng = np.random.default_rng(seed)
    positive, negative = rng.random(60) * (rng.random(60) < 0.7), rng.random(60) * (rng.random(60) < 0.7)
    positive[:20] = negative[:20] = 0.5
    return rng.standard_normal(60) * 2, positive, negative, rng.standard_normal(60) * 3


def terms(scores: Array, positive: Array, negative: Array) -> tuple[float, Array, Array]:
    slopes, curvatures = np.full_like(scores, np.nan), np.full_like(scores, np.nan)
    return SquaredHinge(positive, negative).evaluate(scores, slopes, curvatures), slopes, curvatures


def test_value_slopes_and_curvatures() -> None:
    scores, positive, negative, _ = draw(0)
    value, slopes, curvatures = terms(scores, positive, negative)
    assert value == pytest.approx(loss(scores, positive, negative), rel=1e-13)
    for i in range(60):
        h = 1e-5 * np.eye(60)[i]
        up, down = loss(scores + h, positive, negative), loss(scores - h, positive, negative)
        assert slopes[i] == pytest.approx((up - down) / 2e-5, abs=1e-8)
        assert curvatures[i] == pytest.approx((up - 2 * value + down) / 1e-10, abs=2e-4)


def test_at_its_kinks_the_loss_has_no_slope_and_no_curvature() -> None:
    value, slopes, curvatures = terms(np.array([1.0, -1.0]), np.array([2.0, 0.0]), np.array([0.0, 2.0]))
    assert value == 0
    np.testing.assert_array_equal(slopes, 0)
    np.testing.assert_array_equal(curvatures, 0)


@pytest.mark.parametrize("step", [0.0, 0.3, 2.0])
def test_the_slope_along_a_direction(step: float) -> None:
    scores, positive, negative, direction = draw(1)
    first, second = SquaredHinge(positive, negative).along(scores, direction, step)
    _, slopes, curvatures = terms(scores + step * direction, positive, negative)
    assert first == pytest.approx(slopes @ direction, rel=1e-12)
    assert second == pytest.approx(curvatures @ direction**2, rel=1e-12)


@pytest.mark.parametrize("step", [0.01, 0.7, 1.9])
def test_slopes_after_a_step_are_the_line_plus_the_jumps(step: float) -> None:
    scores, positive, negative, direction = draw(2)
    _, before, curvatures = terms(scores, positive, negative)
    _, after, moved = terms(scores + step * direction, positive, negative)
    slopes, jumps = before.copy(), np.full(60, np.nan)
    count = SquaredHinge(positive, negative).update(
        scores + step * direction, curvatures, direction, step, slopes, jumps
    )
    np.testing.assert_allclose(slopes, after, atol=1e-14)
    np.testing.assert_allclose(before + step * curvatures * direction + jumps, after, atol=1e-12)
    assert count >= np.count_nonzero(np.abs(jumps) > 1e-12)
    assert count >= np.count_nonzero(curvatures != moved)
    same_piece = (np.sign(scores - 1) == np.sign(scores + step * direction - 1)) & (
        np.sign(scores + 1) == np.sign(scores + step * direction + 1)
    )
    assert not jumps[same_piece].any()


def test_a_row_that_jumps_over_the_margin_between_equal_costs_is_seen() -> None:
    """Its curvature is the same on both sides, its slope is not on the line."""
    positive = negative = np.array([0.5])
    slopes, jumps = np.array([-1.5]), np.zeros(1)
    count = SquaredHinge(positive, negative).update(
        np.array([2.0]), np.array([0.5]), np.array([4.0]), 1.5, slopes, jumps
    )
    assert count == 1
    assert slopes[0] == 1.5
    assert -1.5 + 1.5 * 0.5 * 4.0 + jumps[0] == 1.5
