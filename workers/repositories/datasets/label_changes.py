"""Changes of labels: the classes and class indices of documents some of which get another label."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from workers.contract import Label
from workers.errors import LimitExceeded
from workers.repositories.datasets.annotations.answers import Answer
from workers.repositories.datasets.documents import Documents
from workers.repositories.datasets.labels import UNLABELED

Classes = list[tuple[Label, int]]
"""classes with the number of documents labeled with each, sorted"""


def changed_labels(documents: Documents, labels: Mapping[int, Label | None], most: int | None = None) -> tuple[Classes, NDArray[np.int32]]:
    """The classes that are left, and the class indices of all documents, after labels by position have changed; None removes a label.

    Integers sort before strings, should there be both. Raises LimitExceeded for more than ``most`` classes.
    """
    numbers: dict[Any, int] = {None: UNLABELED, **{label: class_index for class_index, label in enumerate(documents.classes)}}
    fresh = count(len(documents.classes))
    class_indices = np.array(documents.class_indices)
    for position, label in labels.items():
        if label not in numbers:
            numbers[label] = next(fresh)
        class_indices[position] = numbers[label]
    counts = np.bincount(class_indices + 1, minlength=len(numbers))[1:]
    present: list[Any] = [label for label, class_index in numbers.items() if class_index != UNLABELED and counts[class_index]]
    if most is not None and len(present) > most:
        raise LimitExceeded("classes", most)
    final = np.full(len(numbers), UNLABELED, np.int32)
    ordered = sorted(present, key=lambda label: (isinstance(label, str), label))
    final[[numbers[label] for label in ordered]] = np.arange(len(ordered))
    return [(label, int(counts[numbers[label]])) for label in ordered], final[class_indices]


def annotated(documents: Documents, answers: Mapping[int, Answer]) -> Documents:
    """The documents with the labels that people gave them, by position, in place of their own. Skipped documents keep their own."""
    labels = {position: answer.label for position, answer in answers.items() if answer.label is not None}
    if not labels:
        return documents
    classes, class_indices = changed_labels(documents, labels)
    drawn = np.zeros(len(class_indices), np.int8) if documents.drawn is None else np.array(documents.drawn)
    for position in labels:
        drawn[position] = answers[position].draw
    known = drawn if (drawn != Draw.UNKNOWN).any() else None
    return documents._replace(class_indices=class_indices, classes=[label for label, _ in classes], drawn=known)
