"""A model with another one for documents that lack a part."""

import json
from typing import Any

import numpy as np

from core.models.io import read_model
from core.models.model import LinearModel
from core.models.parted import PartedModel
from core.validation.calibration import Calibration
from tests.core.problems import dense_of, random_rows
from tests.there import there

CLASSES = ["a", "b", "c"]
ROWS = random_rows(np.random.default_rng(0), 40, 12, 0.3)
LACK = (dense_of(ROWS)[:, 8:] == 0).all(axis=1)


def linear(seed: int, n_features: int) -> LinearModel:
    rng = np.random.default_rng(seed)
    calibration = Calibration(rng.uniform(0.5, 3, 3), rng.standard_normal(3), rng.uniform(0.5, 2, 3))
    features = np.arange(n_features, dtype=np.uint32)
    coefficients, intercepts = rng.standard_normal((n_features, 3)), rng.standard_normal(3)
    return LinearModel(CLASSES, 12, features, coefficients, intercepts, calibration=calibration)


WHOLE, OTHER = linear(1, 12), linear(2, 8)
MODEL = PartedModel.of(WHOLE, OTHER, np.array([[8, 12]]))


def test_documents_that_lack_a_part_have_the_probabilities_of_the_other_model() -> None:
    assert 0 < np.count_nonzero(LACK) < len(LACK)
    scores = MODEL.scores(ROWS)
    probabilities = there(MODEL.probabilities(scores))
    np.testing.assert_array_equal(scores[~LACK], WHOLE.scores(ROWS)[~LACK])
    np.testing.assert_allclose(probabilities[LACK], there(OTHER.probabilities(OTHER.scores(ROWS)))[LACK], atol=1e-11)
    np.testing.assert_allclose(MODEL.scores(ROWS.between(5, 25)), scores[5:25])


def test_a_part_of_zeros_is_none() -> None:
    """Whether they are stored or not."""
    zeros = ROWS._replace(values=np.where(np.asarray(ROWS.indices) < 8, ROWS.values, np.float32(0)))
    np.testing.assert_allclose(MODEL.scores(zeros), MODEL.incomplete.scores(ROWS))


def test_it_is_read_as_it_was_stored() -> None:
    arrays, meta = MODEL.to_arrays()
    found: Any = read_model(arrays, json.loads(json.dumps(meta)))
    assert isinstance(found, PartedModel)
    np.testing.assert_array_equal(found.scores(ROWS), MODEL.scores(ROWS))
    assert found.nbytes == MODEL.nbytes > WHOLE.nbytes


def test_each_score_is_explained_by_the_model_that_gave_it() -> None:
    for row in (int(np.argmax(LACK)), int(np.argmin(LACK))):
        own = ROWS.between(row, row + 1)
        contributions = MODEL.contributions(own, 1)
        assert contributions.intercept + contributions.amounts.sum() == MODEL.scores(own)[0, 1]


def test_with_other_numbers_of_features_scores_are_the_same() -> None:
    numbers = np.arange(12) + np.where(np.arange(12) < 8, 0, 3)
    moved = ROWS._replace(indices=numbers[ROWS.indices].astype(np.uint32), n_features=15)
    np.testing.assert_array_equal(MODEL.renumbered(numbers).scores(moved), MODEL.scores(ROWS))
