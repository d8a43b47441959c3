"""Which labels of a dataset a version was trained on: on these it looks better than it is."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.services import Services
from workers.contract import Dataset, Version
from workers.errors import NotFound
from workers.repositories.datasets import Documents


class Trained(NamedTuple):
    """What is known of the documents of a dataset and the training of a version."""

    labeled: NDArray[np.bool_] | None
    """shape (n_documents,): which the training knew with a label; None where it had other documents"""
    known: bool = True
    """false where the dataset of the training is gone, so that nobody can tell"""


def trained_on(services: Services, version: Version, dataset: Dataset) -> Trained:
    """Compare a dataset with that of a version's training, by what they are stored as. Raises StoreUnavailable."""
    try:
        training = services.datasets.get(version.dataset)
        if not _same_documents(training, dataset):
            return Trained(None)
        return Trained(services.datasets.open(training.id).class_indices >= 0)
    except NotFound:
        return Trained(None, known=False)


def chosen(documents: Documents, trained: Trained, held_out: bool) -> NDArray[np.int64]:
    """Positions of the documents to evaluate on: of the labeled ones all, or those whose labels were not trained on."""
    labeled = documents.class_indices >= 0
    if held_out and trained.labeled is not None:
        labeled &= ~trained.labeled
    return np.flatnonzero(labeled)


def warnings(trained: Trained, version: Version, positions: NDArray[np.int64]) -> list[str]:
    """What is to be said of figures on the documents at these positions."""
    if not trained.known:
        return [f"whether the model was trained on these labels cannot be told: dataset {version.dataset!r} is gone"]
    if trained.labeled is None:
        return []
    found = []
    n_labeled = int(np.count_nonzero(trained.labeled[positions]))
    n_others = len(positions) - n_labeled
    if n_labeled:
        found.append(f"{n_labeled} of the {len(positions)} labeled documents were trained on with their labels: the figures flatter the model")
    if n_others:
        found.append(f"{n_others} of the {len(positions)} labeled documents were among those of the training, without their labels")
    return found


def _same_documents(one: Dataset, other: Dataset) -> bool:
    """Whether two datasets differ at most in labels and ids; one that was posted twice is the same, one that is a part of another is not."""
    contents = [{kind: file.sha256 for kind, file in each.files.items() if kind not in ("labels", "ids")} for each in (one, other)]
    return contents[0] == contents[1]
