"""Scores of labels left out, by fits without the labels of their fold."""

import numpy as np

from core.selection.held_out import FoldScores, left_out_scores


def test_scores_are_by_the_fit_without_the_row() -> None:
    by_fit = np.arange(24.0).reshape(4, 3, 2)
    found = left_out_scores(by_fit, np.array([2, -1, 0]))
    np.testing.assert_array_equal(found, [[12.0, 13.0], [np.nan, np.nan], [4.0, 5.0]])


def test_scores_at_a_fraction_have_this_share_of_the_unlabeled_rows_above_zero(rng: np.random.Generator) -> None:
    unlabeled, labeled, folds = rng.standard_normal((3, 1_000)), np.zeros(4), [0, 1, 2, 2]
    fractions = np.array([0.1, 0.5, 0.9])
    found = FoldScores(labeled, list(unlabeled)).at(fractions, np.array(folds))
    for row, fold in enumerate(folds):
        for place, fraction in enumerate(fractions):
            assert (unlabeled[fold] + found[place, row] > 0).mean() == fraction
    assert (np.diff(found, axis=0) > 0).all(), "the more documents are to be positive, the higher each scores"
