"""Forecasts of the error after more labels."""

import numpy as np
import pytest

from core.evaluation.forecast import Point, forecast
from tests.there import there


def curve(error: float, rate: float, now: int, labels: int) -> list[Point]:
    """Versions on a power law, as a sample of ``labels`` would show them."""
    learned = [max(1, round(now * share)) for share in (0.25, 0.5, 0.75, 1.0)]
    return [Point(n, labels, round(labels * min(0.95, error * (n / now) ** -rate))) for n in learned]


def test_a_curve_that_falls_falls_on_and_a_flat_one_stays() -> None:
    steep, flat = forecast(curve(0.1, 0.9, 100, 2_000), 100), forecast(curve(0.1, 0.0, 100, 2_000), 100)
    assert steep is not None
    assert flat is not None
    assert steep.expected == pytest.approx(0.1 * 2**-0.9, abs=0.006)
    assert flat.expected == pytest.approx(0.1, abs=0.01)
    assert steep.low < steep.expected < steep.high < flat.expected


def test_fewer_labels_say_less() -> None:
    few, many = forecast(curve(0.2, 0.4, 80, 50), 20), forecast(curve(0.2, 0.4, 80, 1_000), 20)
    assert few is not None
    assert many is not None
    assert few.high - few.low > 1.2 * (many.high - many.low)
    assert many.expected < 0.2


def test_one_version_is_continued_as_curves_usually_go() -> None:
    found = there(forecast([Point(40, 500, 100)], 20))
    assert 0.15 < found.expected < 0.2


def test_without_labels_there_is_none() -> None:
    assert forecast([], 20) is None
    assert forecast([Point(20, 0, 0), Point(0, 50, 10)], 20) is None


def test_most_forecasts_have_the_error() -> None:
    """Of errors that fall at various rates, measured by 100 labels, at least 70 of 100 are where the forecast says."""
    chance, kept = np.random.default_rng(1), 0
    for _ in range(100):
        rate, error = abs(chance.normal(0.35, 0.2)), chance.uniform(0.03, 0.4)
        points = [
            Point(n, 100, int(chance.binomial(100, min(0.95, error * (n / 80) ** -rate)))) for n in (20, 40, 60, 80)
        ]
        found = there(forecast(points, 20))
        kept += found.low <= error * (100 / 80) ** -rate <= found.high
    assert kept >= 70
