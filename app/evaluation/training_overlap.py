"""Overlap of a dataset with the training data of a version: on labels that it was trained on, figures are too
optimistic.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.services import Services
from storage.errors import NotFound
from storage.records import Dataset, Version
from storage.repositories.datasets import Documents


class TrainingOverlap(NamedTuple):
    """The documents of a dataset that a version was trained on."""

    labeled: NDArray[np.bool_] | None
    """Whether a document was trained on with its label, of shape (n_documents,); None if the training had other
    documents."""
    known: bool = True
    """False if the training dataset was deleted, so that the overlap is unknown."""


def training_overlap(services: Services, version: Version, dataset: Dataset) -> TrainingOverlap:
    """Compare a dataset with the training dataset of a version, by digests of their files. Raises StoreUnavailable."""
    try:
        training = services.datasets.get(version.dataset)
        if not _same_documents(training, dataset):
            return TrainingOverlap(None)
        return TrainingOverlap(services.datasets.open(training.id, version.annotations).class_indices >= 0)
    except NotFound:
        return TrainingOverlap(None, known=False)


def positions_to_evaluate(documents: Documents, overlap: TrainingOverlap, held_out: bool) -> NDArray[np.int64]:
    """Positions of the labeled documents; with ``held_out``, of those whose labels were not trained on."""
    labeled = documents.class_indices >= 0
    if held_out and overlap.labeled is not None:
        labeled &= ~overlap.labeled
    return np.flatnonzero(labeled)


def told(overlap: TrainingOverlap, positions: NDArray[np.int64]) -> int | None:
    """How many of the documents at these positions the version was trained on with their labels;

    None if that is unknown.
    """
    if not overlap.known:
        return None
    return 0 if overlap.labeled is None else int(np.count_nonzero(overlap.labeled[positions]))


def overlap_warnings(overlap: TrainingOverlap, version: Version, positions: NDArray[np.int64]) -> list[str]:
    """Warnings about figures on the documents at these positions."""
    if not overlap.known:
        return [f"whether the model was trained on these labels is unknown: dataset {version.dataset!r} was deleted"]
    if overlap.labeled is None:
        return []
    found = []
    n_labeled = told(overlap, positions) or 0
    n_others = len(positions) - n_labeled
    if n_labeled:
        found.append(
            f"{n_labeled} of the {len(positions)} labeled documents were trained on with their labels: the "
            "figures are too optimistic"
        )
    if n_others:
        found.append(f"{n_others} of the {len(positions)} labeled documents were trained on without their labels")
    return found


def _same_documents(one: Dataset, other: Dataset) -> bool:
    """Whether two datasets have the same documents in the same order; their labels and ids may differ."""
    contents = [
        {kind: file.sha256 for kind, file in each.files.items() if kind not in ("labels", "ids", "drawn")}
        for each in (one, other)
    ]
    return contents[0] == contents[1]
