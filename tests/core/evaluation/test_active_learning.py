"""Which documents to ask about: against full sorts, brute force and dense arithmetic."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from core.evaluation import active_learning as querying
from core.evaluation.active_learning import (
    BalancedMargins,
    SmallestMargins,
    comparable,
    interleaved,
    random_positions,
    representatives,
    similarities,
    top_two,
)
from tests.core.problems import dense_of, random_rows, rows_of

VALUES = st.integers(2, 6).flatmap(
    lambda columns: arrays.arrays(
        np.float64,
        st.tuples(st.integers(0, 9), st.just(columns)),
        elements=st.sampled_from([-1.0, 0.0, 0.25, 0.5, 3.0]),
    )
)


@settings(deadline=None, max_examples=200)
@given(VALUES)
def test_the_contest_is_between_the_two_largest(values: NDArray[np.float64]) -> None:
    found = top_two(values)
    assert len(found.margins) == len(values)
    for row, first, second, margin in zip(values, found.first, found.second, found.margins, strict=True):
        largest = sorted(row.tolist(), reverse=True)
        assert first == np.argmax(row)
        assert first != second
        assert row[second] == largest[1]
        assert margin == largest[0] - largest[1] >= 0


def test_one_column_is_the_score_of_the_second_of_two() -> None:
    found = top_two(np.array([[-2.0], [0.5], [0.0]]))
    assert (found.first.tolist(), found.second.tolist(), found.margins.tolist()) == (
        [0, 1, 0],
        [1, 0, 1],
        [2.0, 0.5, 0.0],
    )


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([0.0, 0.5, 0.5, 1.0, 2.0, 7.0]), max_size=40), st.integers(1, 12), st.integers(1, 15))
def test_the_least_sure_are_those_of_a_full_sort(margins: list[float], most: int, batch: int) -> None:
    """However they are cut into batches; and no more than asked for are ever held."""
    pool, positions = SmallestMargins(most), np.arange(0, 3 * len(margins), 3)
    for start in range(0, len(margins), batch):
        pool.add(positions[start : start + batch], np.array(margins[start : start + batch]))
        assert len(pool.positions) == len(pool.margins) <= most
    expected = sorted(zip(margins, positions.tolist(), strict=True))[:most]
    assert pool.positions.tolist() == [position for _, position in expected]
    assert pool.margins.tolist() == [margin for margin, _ in expected]


def covered(similar: NDArray[np.float64], chosen: list[int]) -> float:
    return float(similar[:, chosen].max(axis=1).sum()) if chosen else 0.0


def cosines(dense: NDArray[np.float64]) -> NDArray[np.float64]:
    norms = np.sqrt((dense**2).sum(axis=1))
    units = dense / np.where(norms > 0, norms, 1.0)[:, None]
    return np.maximum(units @ units.T, 0.0)


@pytest.mark.parametrize(("width", "density"), [(40, 0.1), (5, 0.9)], ids=["sparse", "dense"])
@pytest.mark.parametrize("block", [1, 7, 256])
def test_similarities_are_cosines(monkeypatch: pytest.MonkeyPatch, width: int, density: float, block: int) -> None:
    monkeypatch.setattr(querying, "_BLOCK", block)
    rows = random_rows(np.random.default_rng(0), 30, width, density)
    np.testing.assert_allclose(similarities(rows), cosines(dense_of(rows)), atol=1e-6)
    np.testing.assert_allclose(similarities(rows.between(4, 17)), cosines(dense_of(rows)[4:17]), atol=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_similarities_of_values_whose_squares_are_no_numbers(scale: float) -> None:
    rows = random_rows(np.random.default_rng(0), 20, 40, 0.1)
    found = similarities(rows._replace(values=rows.values * np.float32(scale)))
    np.testing.assert_allclose(found, similarities(rows), atol=1e-6)


def test_representatives_come_near_the_best_choice_there_is() -> None:
    rows = random_rows(np.random.default_rng(5), 14, 12, 0.3)
    similar = cosines(dense_of(rows))
    best = max(covered(similar, list(chosen)) for chosen in combinations(range(14), 3))
    assert (1 - math.exp(-1.0)) * best <= covered(similar, representatives(rows, 3).tolist()) <= best + 1e-6


def test_one_of_each_group_comes_before_a_second_of_any() -> None:
    """Documents of three groups that share no feature, one of them of a single document; an empty one stands for none
    and comes last.
    """
    dense = np.zeros((10, 6))
    dense[:5, 0], dense[:5, 1] = 1.0, np.linspace(0, 0.2, 5)
    dense[5:8, 2], dense[5:8, 3] = 1.0, np.linspace(0, 0.2, 3)
    dense[9, 4] = 1.0
    chosen = representatives(rows_of(dense), 10).tolist()
    assert [place // 5 + (place == 9) for place in chosen[:3]] == [0, 1, 2]
    assert chosen[-1] == 8
    assert sorted(chosen) == list(range(10))


def test_of_copies_the_second_comes_after_all_others() -> None:
    dense = np.eye(5)[[0, 1, 1, 2, 3]]
    assert representatives(rows_of(dense), 5).tolist() == [1, 0, 3, 4, 2]


def test_how_many_can_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(querying, "MOST_NONZEROS", 5)
    rows = rows_of([[1, 1, 0], [1, 0, 0], [1, 1, 1], [0, 0, 0], [1, 0, 0]])
    assert [
        comparable(rows.indptr, np.array(chosen, np.int64)) for chosen in ([], [0], [2, 0, 3, 4], [4, 1, 2], [2, 2])
    ] == [0, 1, 3, 3, 1]


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 2.0])), max_size=40),
    st.integers(1, 12),
    st.integers(1, 15),
)
def test_the_least_sure_of_each_class_in_turn(given_documents: list[tuple[int, float]], most: int, batch: int) -> None:
    pool = BalancedMargins(most)
    for start in range(0, len(given_documents), batch):
        part = given_documents[start : start + batch]
        classes, margins = np.array([each for each, _ in part], np.intp), np.array([margin for _, margin in part])
        pool.add(np.arange(start, start + len(part)), classes, margins)
    left = {
        each: sorted((margin, place) for place, (own, margin) in enumerate(given_documents) if own == each)
        for each in range(4)
    }
    expected: list[tuple[int, int]] = []
    while any(left.values()):
        heads = sorted((*queue.pop(0), each) for each, queue in left.items() if queue)
        expected += [(place, each) for _, place, each in heads]
    found = pool.balanced
    assert list(zip(found.positions.tolist(), found.classes.tolist(), strict=True)) == expected[:most]
    assert found.taken(2).positions.tolist() == [place for place, _ in expected[:most][:2]]


def test_shares_of_several_labels_go_with_the_roots_of_how_many_are_expected_to_be_wrong() -> None:
    """900 and 100 of two labels; where nothing is expected to be wrong comes last."""
    pool, likeliest = BalancedMargins(40, several=True), np.repeat([0, 1, 2], [900, 100, 5])
    for places in np.array_split(np.arange(len(likeliest)), 3):
        pool.add(places, likeliest[places], np.where(likeliest[places] == 2, 0.0, -1.0))
    assert np.bincount(pool.balanced.classes, minlength=3).tolist() == [30, 10, 0]


@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_each_representative_adds_the_most_and_classes_are_as_even_as_in_the_first_rows(
    seed: int, n_classes: int
) -> None:
    rng = np.random.default_rng(seed)
    rows, classes = random_rows(rng, 40, 30, 0.15), rng.integers(0, n_classes, 40)
    similar = cosines(dense_of(rows))
    chosen = representatives(rows, 12, classes if n_classes > 1 else None).tolist()
    left = np.bincount(classes[:12], minlength=n_classes)
    for count, place in enumerate(chosen):
        before = covered(similar, chosen[:count])
        allowed = [other for other in range(rows.n_rows) if other not in chosen[:count] and left[classes[other]]]
        best = max(covered(similar, [*chosen[:count], other]) for other in allowed)
        assert covered(similar, [*chosen[:count], place]) - before == pytest.approx(best - before, abs=1e-4)
        left[classes[place]] -= 1
    assert not left.any()


@pytest.mark.parametrize(
    ("n", "share", "expected"),
    [
        (0, 0.25, 0),
        (3, 0.25, 0),
        (4, 0.25, 1),
        (10, 0.25, 2),
        (20, 0.25, 5),
        (100, 0.29, 29),
        (4, 0.01, 1),
        (3, 0.01, 0),
        (9, 0.0, 0),
        (5, 1.0, 5),
    ],
)
def test_how_many_are_random(n: int, share: float, expected: int) -> None:
    drawn = random_positions(np.arange(3, 1500), n, share, seed=0)
    assert len(set(drawn.tolist())) == expected
    assert np.isin(drawn, np.arange(3, 1500)).all()


def test_rounds_of_one_seed_are_one_random_sample() -> None:
    """Documents lie by class: a draw from the same places in every round would have the same classes in each."""
    classes, unlabeled = np.repeat(np.arange(4), 250), np.arange(1000)
    rounds = []
    for _ in range(30):
        drawn = random_positions(unlabeled, 20, 0.25, seed=1)
        assert drawn.tolist() == random_positions(unlabeled, 20, 0.25, seed=1).tolist()
        rounds.append(np.bincount(classes[drawn], minlength=4))
        unlabeled = np.setdiff1d(unlabeled, drawn)
    off = np.array(rounds).sum(axis=0) - 37.5
    assert (off * off).sum() / 37.5 < 16.3  # chi-squared of three degrees of freedom: one of a thousand is beyond


@pytest.mark.parametrize(("n_random", "n_chosen"), [(0, 0), (0, 3), (3, 0), (1, 3), (5, 15), (2, 8), (7, 3), (1, 999)])
def test_random_ones_are_spread_evenly(n_random: int, n_chosen: int) -> None:
    random, chosen = np.arange(n_random), 1000 + np.arange(n_chosen)
    mixed = interleaved(random, chosen).tolist()
    assert [each for each in mixed if each < 1000] == random.tolist()
    assert [each for each in mixed if each >= 1000] == chosen.tolist()
    for beginning in range(len(mixed) + 1):
        count = sum(each < 1000 for each in mixed[:beginning])
        assert count == beginning * n_random // max(1, len(mixed))
