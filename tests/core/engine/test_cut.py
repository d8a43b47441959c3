"""The pass that scores rows and sums up those that fall short of the margin."""

from typing import Any

import numpy as np
import pytest

from core.engine import passes
from core.engine.passes import Passes
from core.engine.requests import Cut
from tests.core.problems import dense_of, normal, random_rows, with_bias


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_cut_is_its_definition(monkeypatch: pytest.MonkeyPatch, seed: int, threads: int) -> None:
    """Over rows with and without labels, some of them empty: these score the bias, and its sign is a side too."""
    monkeypatch.setattr(passes, "_SERIAL", 0)
    monkeypatch.setattr(passes, "SLICE", 100)
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 80, 9)
    vector, labels, weights = normal(rng, 10), rng.integers(-1, 2, 80).astype(float), rng.random(80)
    scores, checkpoint = np.full(80, np.nan), []
    over = Passes(rows, threads, lambda: checkpoint.append(1))
    answer: Any = over.cut(Cut(vector, labels, weights, scores))
    over.close()
    X = with_bias(dense_of(rows))
    expected = X @ vector
    sides = np.where(labels != 0, labels, np.where(expected >= 0, 1, -1))
    short = sides * expected < 1
    assert 10 < short.sum() < 80
    assert checkpoint
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    np.testing.assert_allclose(answer, X.T @ (weights * sides * short), atol=1e-12)


def test_a_score_of_nothing_counts_as_positive() -> None:
    rows = random_rows(np.random.default_rng(0), 5, 3)
    over = Passes(rows, 1, lambda: None)
    answer = over.cut(Cut(np.zeros(4), np.zeros(5), np.ones(5), np.empty(5)))
    over.close()
    np.testing.assert_allclose(answer, with_bias(dense_of(rows)).sum(axis=0))
