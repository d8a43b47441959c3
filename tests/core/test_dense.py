"""Dense algebra in pieces: against LAPACK all at once, however it is cut, and how long it stays silent."""

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from core.semisup import dense
from core.semisup.dense import Indefinite, Matrix
from tests.core.problems import normal


def answer_of(steps: Generator[None, None, Any]) -> tuple[Any, int]:
    """What a generator returns, and how often it pauses."""
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, pauses
        pauses += 1


def definite(n: int) -> Matrix:
    half = normal(np.random.default_rng(n), n * n).reshape(n, n)
    return np.asarray(half @ half.T + n * np.eye(n))


@pytest.fixture(params=[(1024, 2e9), (16, 2e9), (16, 4000.0), (7, 1.0)], ids=["whole", "panels", "strips", "columns"])
def _cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "_PANEL", request.param[0])
    monkeypatch.setattr(dense, "_WORK", request.param[1])


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("n", [0, 1, 16, 50])
def test_the_factor_and_the_inverse_are_those_of_lapack(n: int) -> None:
    matrix = definite(n)
    lower = np.tril(matrix) + np.triu(np.full((n, n), 9.0), 1)
    factor = answer_of(dense.cholesky(lower))[0]
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix), rtol=1e-12, atol=1e-12)
    assert factor is lower, "it is overwritten, not copied"
    np.testing.assert_allclose(answer_of(dense.inverse(factor))[0], np.linalg.inv(matrix), rtol=1e-10, atol=1e-12)
    assert answer_of(dense.is_definite(matrix))[0] is True


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("place", [0, 20, 49])
@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_what_is_not_definite_is_found_wherever_it_is(place: int, value: float) -> None:
    matrix = definite(50)
    matrix[place, place] = value
    with pytest.raises(Indefinite):
        answer_of(dense.cholesky(matrix.copy()))
    assert answer_of(dense.is_definite(matrix))[0] is False


def test_between_two_pauses_there_is_no_more_work_than_was_agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    """n³ / 6 multiplications of a factor, in pieces of a panel's own or of ``_WORK``, and n³ / 2 of an inverse."""
    monkeypatch.setattr(dense, "_PANEL", 20)
    monkeypatch.setattr(dense, "_WORK", 20_000.0)
    factor, pauses = answer_of(dense.cholesky(definite(200)))
    assert pauses >= 200**3 / 6 / 20_000
    assert answer_of(dense.inverse(factor))[1] >= 200**3 / 2 / 20_000


def test_the_largest_eigenvalue_is_hardly_too_small() -> None:
    matrix = definite(40)
    found, pauses = answer_of(dense.largest_eigenvalue(matrix))
    assert 0.9 * np.linalg.eigvalsh(matrix).max() <= found <= np.linalg.eigvalsh(matrix).max() * (1 + 1e-12)
    assert pauses > 1
