"""Dense algebra in pieces: against LAPACK all at once, however it is cut, and how long it stays silent."""

from collections.abc import Generator

import numpy as np
import pytest

from core.numerics import blocked_lapack as dense
from core.numerics.blocked_lapack import Indefinite, Matrix
from tests.core.problems import answer_of, normal


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
    square = normal(np.random.default_rng(n + 1), n * n).reshape(n, n)
    np.testing.assert_allclose(
        answer_of(dense.lower_product(factor, square))[0], factor @ square, rtol=1e-12, atol=1e-10
    )
    np.testing.assert_allclose(
        answer_of(dense.upper_product(factor, square))[0], factor.T @ square, rtol=1e-12, atol=1e-10
    )
    divided = square.copy()
    answer_of(dense.divide(divided, factor))
    np.testing.assert_allclose(divided @ factor.T, square, rtol=1e-12, atol=1e-12)


@pytest.mark.usefixtures("_cut")
@pytest.mark.parametrize("place", [0, 20, 49])
@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_what_is_not_definite_is_found_wherever_it_is(place: int, value: float) -> None:
    matrix = definite(50)
    matrix[place, place] = value
    with pytest.raises(Indefinite):
        answer_of(dense.cholesky(matrix))


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


@pytest.mark.parametrize("n", [1, 2, 6, 40, 200])
@pytest.mark.parametrize("spread", [0.0, 1e-12, 1.0])
def test_the_least_eigenvalue_beside_another_matrix(n: int, spread: float) -> None:
    """Of like matrices, of one with a single eigenvalue, and of one near it."""
    beside, change = definite(n), normal(np.random.default_rng(3), n * n).reshape(n, n)
    change = spread * n * (change + change.T) - 0.5 * beside
    root = np.linalg.inv(np.linalg.cholesky(beside))
    true = np.linalg.eigvalsh(root @ change @ root.T).min()
    found = answer_of(
        dense.least_eigenvalue(lambda q: np.asarray(change @ q), lambda z: np.asarray(root.T @ (root @ z)), n)
    )[0]
    assert true - 0.05 * max(1.0, abs(true)) <= found <= true + 0.02 * max(1.0, abs(true))


def test_an_attempt_is_made_again_nearer_until_there_is_nowhere_to_go() -> None:
    tried: list[float] = []

    def attempt(length: float) -> Generator[None, None, str]:
        tried.append(length)
        yield
        if length > 0.5:
            raise Indefinite
        return "there"

    length, found = answer_of(dense.backtrack(1.0, attempt))[0]
    assert (length, found) == (tried[-1], "there")
    assert 0.3 < length <= 0.5
    assert tried == sorted(tried, reverse=True)
    with pytest.raises(Indefinite):
        answer_of(dense.backtrack(1e-9, attempt))
