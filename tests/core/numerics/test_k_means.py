"""k-means beside the plain one."""

import numpy as np

from core.numerics.k_means import assign, k_means


def test_centres_are_the_means_of_their_points_and_near_them(rng: np.random.Generator) -> None:
    truth = np.repeat(np.arange(4), 25)
    points = rng.standard_normal((100, 3)) * 0.3 + 3.0 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])[truth]
    centres = k_means(points, 4, 0, lambda: None)
    places = np.zeros(100, np.int64)
    total = assign(points, centres, places)
    distances = ((points[:, None] - centres) ** 2).sum(axis=2)
    assert places.tolist() == distances.argmin(axis=1).tolist()
    assert np.isclose(total, distances.min(axis=1).sum())
    assert all(len(np.unique(places[truth == each])) == 1 for each in range(4))
    np.testing.assert_allclose(centres, [points[places == each].mean(axis=0) for each in range(4)])


def test_there_are_no_more_centres_than_different_points() -> None:
    points = np.repeat(np.eye(2), 5, axis=0)
    assert k_means(points, 4, 0, lambda: None).tolist() in ([[1, 0], [0, 1]], [[0, 1], [1, 0]])
