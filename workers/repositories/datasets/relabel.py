"""Relabeling: the manifest and the labels of a dataset that differs from another in some labels."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import MAX_FAULTS, Fault, InvalidDocuments
from workers.contract import Dataset, File, Label
from workers.errors import LimitExceeded
from workers.names import new_id
from workers.repositories.datasets.documents import Documents
from workers.repositories.datasets.ids import Ids
from workers.repositories.datasets.labels import UNLABELED, label_detail
from workers.repositories.datasets.manifest import class_warnings, content_digest
from workers.repositories.datasets.npy_files import NpyWriter
from workers.settings import DatasetLimits
from workers.store.digest import sha256_of


def relabeled(base: Dataset, documents: Documents, labels: Mapping[str, Label | None], limits: DatasetLimits, folder: Path) -> tuple[Dataset, Path]:
    """The manifest of the changed dataset, which is not stored yet, and the file of its labels, in ``folder``. ``base`` does not change.

    Raises InvalidDocuments, LimitExceeded.
    """
    positions = _positions(documents.ids, labels)
    _refuse([Fault(id, "label", detail) for id, label in labels.items() if label is not None and (detail := label_detail(label, None))])
    classes, class_indices = _changed(documents, positions, labels)
    if len(classes) > limits.classes:
        raise LimitExceeded("classes", limits.classes)
    id = new_id("ds")
    with NpyWriter(folder / "labels.npy", "<i4") as file:
        file.append(class_indices)
        path = file.finish()
    digest, size = sha256_of(path)
    files = {**base.files, "labels": File(key=f"datasets/{id}/labels.npy", sha256=digest, bytes=size)}
    warnings = [warning for warning in base.warnings if warning not in class_warnings(base.classes)]
    changes = {
        "id": id,
        "n_labeled": sum(number for _, number in classes),
        "classes": classes,
        "sha256": content_digest(base.n_features, classes, files),
        "created_at": datetime.now(UTC),
        "warnings": [*warnings, *class_warnings(classes)],
        "files": files,
    }
    return base.model_copy(update=changes), path


def _changed(
    documents: Documents, positions: Mapping[str, int], labels: Mapping[str, Label | None]
) -> tuple[list[tuple[Label, int]], NDArray[np.int32]]:
    """The classes that are left, with how often each occurs, and the class indices of all documents."""
    numbers: dict[Any, int] = {None: UNLABELED, **{label: class_index for class_index, label in enumerate(documents.classes)}}
    fresh = count(len(documents.classes))
    class_indices = np.array(documents.class_indices)
    for id, label in labels.items():
        if label not in numbers:
            numbers[label] = next(fresh)
        class_indices[positions[id]] = numbers[label]
    counts = np.bincount(class_indices + 1, minlength=len(numbers))[1:]
    present: list[Any] = [label for label, class_index in numbers.items() if class_index != UNLABELED and counts[class_index]]
    _refuse_mixture(present, labels)
    final = np.full(len(numbers), UNLABELED, np.int32)
    ordered = sorted(present)
    final[[numbers[label] for label in ordered]] = np.arange(len(ordered))
    return [(label, int(counts[numbers[label]])) for label in ordered], final[class_indices]


def _refuse_mixture(present: list[Label], labels: Mapping[str, Label | None]) -> None:
    """Raise InvalidDocuments if strings and integers would be mixed; it names the documents whose new label is of the other type."""
    kinds = {type(label): None for label in present}
    if len(kinds) > 1:
        first = next(iter(kinds))
        odd = [id for id, label in labels.items() if label is not None and type(label) is not first]
        _refuse([Fault(id, "label", "labels must be all strings or all integers") for id in odd])


def _positions(ids: Ids, labels: Mapping[str, Label | None]) -> dict[str, int]:
    """Positions of the documents by id; raises InvalidDocuments naming ids that are unknown."""
    if ids.positional:
        # Python refuses to convert thousands of digits
        longest = len(str(len(ids)))
        found = {id: int(id) for id in labels if len(id) <= longest and id.isascii() and id.isdigit() and str(int(id)) == id and int(id) < len(ids)}
    else:
        found = {id: position for position, id in enumerate(ids) if id in labels}
    _refuse([Fault(id, "id", "there is no such document") for id in labels if id not in found])
    return found


def _refuse(faults: list[Fault]) -> None:
    if faults:
        first = faults[0]
        raise InvalidDocuments(f"document {first.document}: {first.field}: {first.detail}", faults[:MAX_FAULTS])
