"""How many labels it takes to tell a model from chance, against SciPy's binomial test."""

import pytest
from scipy.stats import binomtest

from core.evaluation import labels_needed as module
from core.evaluation.labels_needed import labels_needed


@pytest.mark.parametrize(
    ("labels", "right", "by_chance", "further"),
    [(20, 9, 0.5, 0.75), (20, 13, 0.5, 0.65), (8, 2, 0.25, 0.625), (0, 0, 0.5, 1.0), (40, 20, 1 / 3, 0.5), (60, 10, 0.5, 0.9)],
)
def test_it_is_the_first_number_that_is_not_chance(labels: int, right: int, by_chance: float, further: float) -> None:
    needed = labels_needed(labels, right, by_chance, further)
    assert needed is not None

    def p_value(n: int) -> float:
        return float(binomtest(right + round(further * (n - labels)), n, by_chance, alternative="greater").pvalue)

    assert p_value(needed) < 0.05
    assert all(p_value(n) >= 0.05 for n in range(max(1, labels), needed))


def test_without_any_gain_no_number_suffices() -> None:
    assert labels_needed(20, 10, 0.5, 0.5) is None
    assert labels_needed(20, 10, 0.5, 0.4) is None
    assert labels_needed(20, 20, 1.0, 1.0) is None


@pytest.mark.parametrize(
    ("labels", "right", "by_chance", "further"), [(20, 9, 0.5, 0.75), (20, 11, 0.5, 0.55), (30, 9, 0.3, 0.4), (100, 40, 0.5, 0.7)]
)
def test_large_numbers_are_near_the_exact_ones(monkeypatch: pytest.MonkeyPatch, labels: int, right: int, by_chance: float, further: float) -> None:
    exact = labels_needed(labels, right, by_chance, further)
    assert exact is not None
    monkeypatch.setattr(module, "_EXACT", 0)
    assert labels_needed(labels, right, by_chance, further) == pytest.approx(exact, rel=0.2)


def test_what_is_hardly_better_than_chance_takes_very_many() -> None:
    needed = labels_needed(200, 101, 0.5, 0.505)
    assert needed is not None
    assert 20_000 < needed < 40_000
