"""The dual of the cutting planes, against all faces of the simplex and the conditions of optimality."""

import numpy as np
import pytest

from core.optimizers.simplex_qp import maximise_on_simplex
from tests.core.problems import Array
from tests.reference.cuts3vm import dual_by_faces


def value(gram: Array, offsets: Array, duals: Array) -> float:
    return float(offsets @ duals - 0.5 * duals @ gram @ duals)


def problem(seed: int, size: int, d: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((size, d)) * 10.0 ** rng.integers(-2, 3)
    return Z @ Z.T, rng.random(size) * 3


def assert_feasible(duals: Array) -> None:
    assert (duals >= 0).all()
    assert duals.sum() <= 1 + 1e-12


@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("seed", range(12))
def test_no_face_is_higher(seed: int, d: int) -> None:
    """With d = 1 and 2 the planes depend on each other."""
    gram, offsets = problem(seed, 6, d)
    duals = maximise_on_simplex(gram, offsets, np.zeros(6))
    assert_feasible(duals)
    assert value(gram, offsets, duals) == pytest.approx(dual_by_faces(gram, offsets), rel=1e-9)


@pytest.mark.parametrize(("size", "d"), [(40, 5), (40, 200), (120, 60)])
def test_many_planes_meet_the_conditions_of_optimality(size: int, d: int) -> None:
    gram, offsets = problem(size, size, d)
    duals = maximise_on_simplex(gram, offsets, np.zeros(size))
    assert_feasible(duals)
    ascents = offsets - gram @ duals
    best = max(0.0, float(ascents.max()))
    assert best - float(ascents @ duals) <= 1e-10 * offsets.max() + 1e-14 * gram.max()


def test_any_start_leads_to_the_same_maximum(rng: np.random.Generator) -> None:
    gram, offsets = problem(3, 12, 20)
    values = [
        value(gram, offsets, maximise_on_simplex(gram, offsets, rng.dirichlet(np.ones(13))[:-1])) for _ in range(20)
    ]
    assert max(values) - min(values) <= 1e-9 * max(values)


def test_inputs_are_only_read() -> None:
    gram, offsets = problem(1, 5, 3)
    start = np.full(5, 0.1)
    for array in (gram, offsets, start):
        array.flags.writeable = False
    maximise_on_simplex(gram, offsets, start)


@pytest.mark.parametrize("copies", [2, 5])
def test_planes_that_are_the_same(copies: int) -> None:
    gram, offsets = problem(2, 4, 4)
    order = np.repeat(np.arange(4), copies)
    duals = maximise_on_simplex(gram[np.ix_(order, order)], offsets[order], np.zeros(4 * copies))
    assert_feasible(duals)
    assert value(gram[np.ix_(order, order)], offsets[order], duals) == pytest.approx(
        dual_by_faces(gram, offsets), rel=1e-9
    )


def test_planes_that_are_nothing() -> None:
    """As of rows without features: then the tallest takes all."""
    duals = maximise_on_simplex(np.zeros((3, 3)), np.array([1.0, 3.0, 2.0]), np.zeros(3))
    np.testing.assert_allclose(duals, [0.0, 1.0, 0.0], atol=1e-9)
    np.testing.assert_array_equal(maximise_on_simplex(np.zeros((2, 2)), np.zeros(2), np.zeros(2)), [0.0, 0.0])


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e6, 1e15])
def test_scales_far_from_one(scale: float) -> None:
    gram, offsets = problem(4, 6, 8)
    duals = maximise_on_simplex(gram * scale, offsets, np.zeros(6))
    assert_feasible(duals)
    assert value(gram * scale, offsets, duals) == pytest.approx(dual_by_faces(gram * scale, offsets), rel=1e-8)
