"""Ways to come by labels: as many as they say, of the classes that they say, and nested where two share labels."""

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.panel import draws
from benchmarks.panel.draws import Labels
from core.documents.drawn import Draw

TRUTH = np.random.default_rng(0).choice(3, 600, p=[0.7, 0.2, 0.1]).astype(np.int32)


def counts(labels: Labels) -> list[int]:
    return list(labels.counts(3).tolist())


def is_sound(labels: Labels) -> bool:
    """No document twice, every class there, nothing known of how labels were come by."""
    return (
        len(np.unique(labels.positions)) == len(labels.told)
        and min(counts(labels)) > 0
        and (labels.drawn == Draw.UNKNOWN).all()
    )


def is_true(labels: Labels) -> bool:
    return np.array_equal(labels.told, TRUTH[labels.positions])


@pytest.mark.parametrize("seed", range(3))
def test_even_labels_are_as_many_of_each_class_and_others_for_another_seed(seed: int) -> None:
    labels = draws.even(TRUTH, 7, seed)
    assert is_sound(labels)
    assert is_true(labels)
    assert counts(labels) == [7, 7, 7]
    assert not np.array_equal(np.sort(labels.positions), np.sort(draws.even(TRUTH, 7, seed + 10).positions))


def test_random_labels_follow_the_classes_and_lack_none() -> None:
    truth = np.repeat([0, 1], [950, 50]).astype(np.int32)
    found = [draws.random(truth, 20, seed).counts(2) for seed in range(50)]
    assert {int(each.sum()) for each in found} == {20}
    assert min(int(each.min()) for each in found) == 1
    assert 0.05 < np.sum(found, axis=0)[1] / 1000 < 0.12


@pytest.mark.parametrize(("ratio", "expected"), [(2, [15, 8, 7]), (3, [18, 6, 6]), (5, [21, 5, 4])])
def test_skewed_labels_are_as_many_in_all_and_favour_one_class(ratio: int, expected: list[int]) -> None:
    for favoured in range(3):
        labels = draws.skewed(TRUTH, 10, favoured, ratio, seed=1)
        assert is_sound(labels)
        assert is_true(labels)
        assert counts(labels)[favoured] == expected[0]
        assert sorted(counts(labels), reverse=True) == expected


def test_more_labels_come_after_the_even_ones() -> None:
    first = draws.even(TRUTH, 5, seed=2)
    labels = draws.more(TRUTH, 5, 1, seed=2)
    assert is_sound(labels)
    assert is_true(labels)
    assert counts(labels) == [5, 5 + draws.MORE, 5]
    assert np.array_equal(labels.positions[:15], first.positions)
    assert np.array_equal(np.sort(draws.evened(labels, 3).positions), np.sort(first.positions))


def test_surplus_labels_are_the_last_ones_of_their_class() -> None:
    labels = Labels(np.arange(7), np.array([0, 1, 1, 0, 1, 0, 0], np.int32), np.zeros(7, np.int8))
    assert draws.evened(labels, 2).positions.tolist() == [0, 1, 2, 3, 4, 5]


def test_found_documents_hold_a_word_of_their_class() -> None:
    rng = np.random.default_rng(3)
    held = rng.random((600, 40)) < 0.05
    for each in range(3):  # five words mark each class, in half of its documents
        own = np.flatnonzero(each == TRUTH)
        held[own, 5 * each : 5 * each + 5] |= rng.random((len(own), 5)) < 0.3
    matrix = sp.csr_matrix(held.astype(np.float32))
    labels = draws.found(TRUTH, matrix, 8, seed=0)
    assert is_sound(labels)
    assert is_true(labels)
    assert counts(labels) == [8, 8, 8]
    for each in range(3):
        assert sorted(draws.words_of(TRUTH, matrix, each).tolist()) == list(range(5 * each, 5 * each + 5))
    assert all(
        held[position, 5 * each : 5 * each + 5].any()
        for position, each in zip(labels.positions, labels.told, strict=True)
    )


@pytest.mark.parametrize(("per_class", "expected"), [(2, 1), (20, 3)])
def test_a_share_of_the_labels_is_wrong(per_class: int, expected: int) -> None:
    labels = draws.wrong(TRUTH, per_class, seed=4)
    assert is_sound(labels)
    assert np.array_equal(labels.positions, draws.even(TRUTH, per_class, seed=4).positions)
    assert np.count_nonzero(labels.told != TRUTH[labels.positions]) == expected


def test_the_largest_the_smallest_and_a_class_in_the_middle_are_favoured() -> None:
    assert draws.favoured_classes(np.repeat([0, 1, 2, 3, 4], [30, 50, 10, 20, 40])) == [1, 2, 0]
    assert draws.favoured_classes(np.repeat([0, 1], [10, 90])) == [1, 0]
