"""What models predict of documents of a dataset."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.predictions.scoring import score_stored
from app.services import Services
from core.evaluation.active_learning import TopTwo, top_two
from core.models.model import Model
from core.one_vs_rest import column_of
from storage.records import Version
from storage.repositories.datasets import Documents


class DatasetScores(NamedTuple):
    """What a model predicts of documents, a number a document each."""

    predicted: NDArray[np.int32]
    """Position of the label in the classes of the model, shape (n,)."""
    probabilities: NDArray[np.float32] | None
    """Probability of that label, shape (n,); None if the model is not calibrated."""
    scores: NDArray[np.float32]
    """Score of that label as answers have it, shape (n,): of two classes that of the second."""
    margins: NDArray[np.float64]
    """Difference of the two likeliest classes, shape (n,): see two_likeliest."""

    @property
    def certainty(self) -> NDArray[np.float32]:
        """What documents are ordered by, shape (n,): the probability, or the distance of the score from the other
        side."""
        return np.abs(self.scores) if self.probabilities is None else self.probabilities


def two_likeliest(scores: NDArray[np.float64], probabilities: NDArray[np.float64] | None) -> TopTwo:
    """By probabilities, or by scores if the model is not calibrated; ``scores`` have the shape (n_rows, n_columns)."""
    return top_two(scores if probabilities is None else probabilities)


def scores_at(model: Model, documents: Documents, positions: NDArray[np.int64] | None) -> DatasetScores:
    """What a model predicts of the documents at ascending positions, or of all; raises InvalidRequest if they are of
    another kind.
    """
    predicted, probabilities, scores, margins = (
        [np.zeros(0, np.int32)],
        [np.zeros(0, np.float32)],
        [np.zeros(0, np.float32)],
        [np.zeros(0)],
    )
    for scored in score_stored(model, documents, positions):
        of_classes = model.probabilities(scored.scores)
        labels = model.labels_of(scored.scores, of_classes)
        everyone = np.arange(len(labels))
        predicted.append(labels.astype(np.int32))
        columns = np.array([column_of(label, model.n_columns) for label in range(len(model.classes))])
        scores.append(scored.scores[everyone, columns[labels]].astype(np.float32))
        margins.append(two_likeliest(scored.scores, of_classes).margins)
        if of_classes is not None:
            probabilities.append(of_classes[everyone, labels].astype(np.float32))
    known = None if model.calibration is None else np.concatenate(probabilities)
    return DatasetScores(np.concatenate(predicted), known, np.concatenate(scores), np.concatenate(margins))


def scores_of_dataset(
    services: Services, version: Version, model: Model, dataset: str, documents: Documents
) -> DatasetScores:
    """What a version predicts of all documents of a dataset. Neither versions nor documents ever change, so it is kept
    for the next question.

    Raises InvalidRequest if the documents are of another kind.
    """
    key = (version.name, version.number, version.job, dataset)
    known = services.score_cache.find(key)
    if known is None:
        known = services.score_cache.keep(key, scores_at(model, documents, None))
    return DatasetScores(*known)
