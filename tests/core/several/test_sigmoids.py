"""Sigmoids of labels, and the thresholds by which F1 is expected to be largest."""

import numpy as np
import pytest

from core.documents.drawn import Draw
from core.numerics.elementary import expit
from core.several.sigmoids import best_thresholds, fit_labels, offsets_at

RNG = np.random.default_rng(0)


def test_offsets_bring_means_to_their_targets() -> None:
    margins, targets = RNG.normal(size=(200, 4)) * [1, 5, 30, 0], np.array([0.02, 0.5, 0.999, 0.3])
    weights = (RNG.random((200, 4)) < 0.5).astype(float)
    found = expit(margins + offsets_at(margins, targets, weights))
    assert (found * weights).sum(axis=0) / weights.sum(axis=0) == pytest.approx(targets, abs=1e-8)


def test_the_sigmoids_that_made_the_labels_are_found() -> None:
    slopes, offsets = np.array([0.8, 1.5, 3.0]), np.array([-2.0, -1.0, 0.5])
    scores, unlabeled = RNG.normal(size=(4000, 3)), RNG.normal(size=(4000, 3)) + 0.3
    applies = RNG.random(scores.shape) < expit(slopes * scores + offsets)
    found = fit_labels(scores, np.where(applies, 1, -1).astype(np.int8), unlabeled)
    assert found.slopes == pytest.approx(slopes, rel=0.35)
    assert found.fractions == pytest.approx(expit(slopes * unlabeled + offsets).mean(axis=0), abs=0.02)
    probabilities = expit(found.slopes * unlabeled + found.offsets)
    assert probabilities.mean(axis=0) == pytest.approx(found.fractions, abs=1e-6)


def test_a_label_that_could_not_be_left_out_has_the_slope_of_the_others_and_its_share() -> None:
    scores = RNG.normal(size=(100, 2))
    known = np.where(RNG.random((100, 2)) < expit(2 * scores), 1, -1).astype(np.int8)
    known[:, 1] = np.where(np.arange(100) == 0, 1, -1)
    scores[0, 1] = np.nan
    for unlabeled in (RNG.normal(size=(500, 2)), np.zeros((0, 2))):
        found = fit_labels(scores, known, unlabeled)
        assert found.slopes[1] == found.slopes[0]
        assert found.fractions[1] == pytest.approx(1 / 101)
        reference = unlabeled[:, 1] if len(unlabeled) else scores[1:, 1]
        likely = expit(found.slopes[1] * reference + found.offsets[1])
        assert likely.mean() == pytest.approx(1 / 101, abs=1e-6)


def test_rare_labels_are_not_taken_for_more_frequent_than_they_are() -> None:
    known = np.where(np.arange(100) < 2, 1, -1).astype(np.int8)
    found = fit_labels(np.zeros((100, 40)), np.tile(known[:, None], 40), np.zeros((300, 40)))
    assert found.fractions == pytest.approx(0.02, abs=1e-3)


def test_documents_found_by_a_label_do_not_say_how_frequent_it_is() -> None:
    """Half of those labeled have the label, a twentieth of the others. Of a label that a tenth seem to have, chance
    does not give half: so it is with documents of unknown origin.
    """
    rng = np.random.default_rng(1)
    applies, others = (np.arange(100) < 50)[:, None], rng.random((4000, 1)) < 0.05
    labeled = rng.normal(3.0 * applies), np.where(applies, 1, -1).astype(np.int8), rng.normal(3.0 * others)
    drawn = (np.full(100, draw, np.int8) for draw in (Draw.RANDOM, Draw.FOUND, Draw.UNKNOWN))
    random, found, unknown = (float(fit_labels(*labeled, drawn=each).fractions[0]) for each in drawn)
    assert random > 0.09
    assert unknown == found == pytest.approx(0.05, abs=0.7 * (random - 0.05))


def test_what_only_does_not_apply_says_nothing_of_frequencies() -> None:
    """Documents of which some labels are not known have none that applies."""
    known = np.where(RNG.random((100, 2)) < 0.3, 1, -1).astype(np.int8)
    scores, others = RNG.normal(known), RNG.normal(-1.0, size=(400, 2))
    partly = np.tile(np.array([[-1, 0]], np.int8), (400, 1))
    alone = fit_labels(scores, known, scores)
    both = fit_labels(np.vstack([scores, others]), np.vstack([known, partly]), scores)
    assert both.fractions == pytest.approx(alone.fractions)
    assert both.offsets == pytest.approx(alone.offsets)


def test_the_best_thresholds_are_those_of_all_thresholds() -> None:
    probabilities = RNG.random((300, 3)) ** [1, 4, 20]
    given = probabilities >= probabilities[:, None]  # by each threshold, of each row
    expected = 2 * (given * probabilities).sum(axis=1) / (given.sum(axis=1) + probabilities.sum(axis=0))
    chosen = probabilities >= best_thresholds(probabilities)
    found = 2 * (chosen * probabilities).sum(axis=0) / (chosen.sum(axis=0) + probabilities.sum(axis=0))
    assert found == pytest.approx(expected.max(axis=0))
