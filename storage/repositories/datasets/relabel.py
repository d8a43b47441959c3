"""Relabeling: the manifest and the labels of a dataset that differs from another in some labels."""

from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.errors import Fault
from storage.names import new_id
from storage.process.settings import DatasetLimits
from storage.records import Dataset, File, Label
from storage.repositories.datasets.batch import refuse
from storage.repositories.datasets.documents import Documents, changed_labels
from storage.repositories.datasets.files.draws import WITHOUT_LABEL, DrawnWriter, draw_detail
from storage.repositories.datasets.files.ids import IdIndex, Ids
from storage.repositories.datasets.files.npy import NpyWriter
from storage.repositories.datasets.labels import UNLABELED, label_detail
from storage.repositories.datasets.manifest import class_warnings, content_digest
from storage.store.local_files import sha256_of

_SOUGHT = 1 << 16
"""Ids that are looked up at a time: sorting very many would hold the interpreter."""


class Changes(NamedTuple):
    """The changes of the labels of a dataset."""

    labels: Mapping[str, Label | None]
    """by document id, None: no label"""
    drawn: Mapping[str, str]
    """how labels were come by, as words by document id; of those in ``labels`` that are not here the service may know
    it"""
    suggested: Mapping[int, Draw]
    """how documents were suggested to be labeled, by position"""


def relabeled(
    base: Dataset, documents: Documents, changes: Changes, limits: DatasetLimits, folder: Path
) -> tuple[Dataset, dict[str, Path]]:
    """The manifest of the changed dataset, which is not stored yet, and its files by content, in ``folder``. ``base``
    does not change.

    Raises InvalidDocuments, LimitExceeded.
    """
    labels, positions = changes.labels, _positions(documents.ids, changes)
    refuse(
        Fault(id, "label", detail)
        for id, label in labels.items()
        if label is not None and (detail := label_detail(label, None))
    )
    refuse(Fault(id, "drawn", detail) for id, word in changes.drawn.items() if (detail := draw_detail(word)))
    classes, class_indices = changed_labels(
        documents, {positions[id]: label for id, label in labels.items()}, limits.classes
    )
    _refuse_mixture(documents.classes, [label for label, _ in classes], labels)
    refuse(Fault(id, "drawn", WITHOUT_LABEL) for id in changes.drawn if class_indices[positions[id]] == UNLABELED)
    id, (paths, counts) = new_id("ds"), _written(folder, class_indices, _drawn(documents, positions, changes))
    files = {content: file for content, file in base.files.items() if content != "drawn"}
    for content, path in paths.items():
        digest, size = sha256_of(path)
        files[content] = File(key=f"datasets/{id}/{path.name}", sha256=digest, bytes=size)
    warnings = [warning for warning in base.warnings if warning not in class_warnings(base.classes)]
    fields = {
        "id": id,
        "n_labeled": sum(number for _, number in classes),
        "classes": classes,
        "drawn": counts,
        "sha256": content_digest(base.n_features, base.parts, classes, files, base.fields),
        "created_at": datetime.now(UTC),
        "warnings": [*warnings, *class_warnings(classes)],
        "files": files,
    }
    return base.model_copy(update=fields), paths


def _written(
    folder: Path, class_indices: NDArray[np.int32], drawn: NDArray[np.int8]
) -> tuple[dict[str, Path], dict[str, int]]:
    """The files of labels and draws by content, and the number of labels by draw."""
    with NpyWriter(folder / "labels.npy", "<i4") as labels, closing(DrawnWriter(folder)) as draws:
        labels.append(class_indices)
        draws.append(drawn, len(drawn))
        paths = {"labels": labels.finish(), "drawn": draws.finish()}
        return {content: path for content, path in paths.items() if path is not None}, draws.counts


def _drawn(documents: Documents, positions: Mapping[str, int], changes: Changes) -> NDArray[np.int8]:
    """How the labels of all documents were come by, shape (n_documents,)."""
    drawn = np.zeros(len(documents.class_indices), np.int8) if documents.drawn is None else np.array(documents.drawn)
    for id, label in changes.labels.items():
        position = positions[id]
        if label is None:
            drawn[position] = Draw.UNKNOWN
        elif documents.class_indices[position] == UNLABELED:
            drawn[position] = changes.suggested.get(position, Draw.UNKNOWN)
    for id, word in changes.drawn.items():
        drawn[positions[id]] = Draw.of(word)
    return drawn


def _refuse_mixture(before: list[Label], after: list[Label], labels: Mapping[str, Label | None]) -> None:
    """Raise InvalidDocuments if strings and integers would be mixed; it names the documents with new labels of the
    other type.
    """
    if len(set(map(type, after))) > 1:
        first = next(type(label) for label in (*before, *labels.values()) if label in after)
        odd = (id for id, label in labels.items() if label is not None and type(label) is not first)
        refuse(Fault(id, "label", "labels must be all strings or all integers") for id in odd)


def _positions(ids: Ids, changes: Changes) -> dict[str, int]:
    """Positions of the documents that change; raises InvalidDocuments naming ids that are unknown."""
    index, found = IdIndex(ids), dict[str, int]()
    changed = chain(changes.labels, (id for id in changes.drawn if id not in changes.labels))
    while wanted := list(islice(changed, _SOUGHT)):
        found |= index.find(wanted)
        refuse(Fault(id, "id", "there is no such document") for id in wanted if id not in found)
    return found
