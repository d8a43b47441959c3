"""How sure a model is of each document of a dataset: kept, so that who labels document after document does not wait for all of them each time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.predictions.scoring import score_stored
from app.services import Services
from core.evaluation.active_learning import TopTwo, top_two
from core.models.model import Model
from workers.contract import Version
from workers.repositories.datasets import Documents


class Margins(NamedTuple):
    """The predicted class of each document of a dataset, and its margin to the next one."""

    first: NDArray[np.int32]
    """Likeliest class, shape (n,)."""
    margins: NDArray[np.float64]
    """Difference to the next one, shape (n,)."""


def two_likeliest(model: Model, scores: NDArray[np.float64]) -> TopTwo:
    """By probabilities, or by scores if the model is not calibrated; ``scores`` have the shape (n_rows, n_columns)."""
    probabilities = model.probabilities(scores)
    return top_two(scores if probabilities is None else probabilities)


def margins_of_dataset(services: Services, version: Version, model: Model, dataset: str, documents: Documents) -> Margins:
    """The margins of all documents of a dataset. Neither versions nor documents ever change, so they are kept for the next suggestions.

    Raises InvalidRequest if the documents are of another kind.
    """
    key = ("margins", version.name, version.number, version.job, dataset)
    return services.array_cache.get(key, lambda: _margins(model, documents))


def _margins(model: Model, documents: Documents) -> Margins:
    first, margins = [np.zeros(0, np.int32)], [np.zeros(0)]
    for scored in score_stored(model, documents):
        two = two_likeliest(model, scored.scores)
        first.append(two.first.astype(np.int32))
        margins.append(two.margins)
    return Margins(np.concatenate(first), np.concatenate(margins))
