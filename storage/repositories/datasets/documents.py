"""Documents of a sealed dataset, opened for reading."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from core.documents.drawn import Draw
from core.documents.kinds import NamedRows, PartKind, PartRows, Rows, RowsOfKind, TextRows
from core.documents.rows import SparseRows
from storage.errors import LimitExceeded
from storage.records import Dataset, Label
from storage.repositories.datasets.annotations.answers import Answer
from storage.repositories.datasets.encodings import KeptVectors
from storage.repositories.datasets.files.extra_fields import INDPTR, LINES, StoredFields
from storage.repositories.datasets.files.ids import Ids
from storage.repositories.datasets.files.npy import open_array, open_bytes
from storage.repositories.datasets.files.part_writer import content_of
from storage.repositories.datasets.labels import UNLABELED
from storage.store import Store


class Documents(NamedTuple):
    """Rows and labels of a dataset, memory-mapped: opening costs no more than the verification of the files."""

    rows: Rows
    class_indices: NDArray[np.int32]
    """shape (n_documents,): position in ``classes``, or -1 for an unlabeled document"""
    classes: list[Label]
    ids: Ids
    drawn: NDArray[np.int8] | None = None
    """shape (n_documents,): how each label was come by, as core.documents.drawn.Draw; None where nothing is known of
    any"""
    vectors: Callable[[str], KeptVectors] | None = None
    """the vectors that are kept of the texts, by the digest of their encoder; None for documents of no dataset"""


class StoredNames(Sequence[str]):
    """Names of the features of a dataset, by column; decoded when the first is read."""

    def __init__(self, path: Path, count: int) -> None:
        self._lines = open_bytes(path)
        self._count = count

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        return self._names[place]

    @cached_property
    def _names(self) -> list[str]:
        return msgspec.json.Decoder(str).decode_lines(self._lines)


def open_documents(store: Store, dataset: Dataset) -> Documents:
    """The documents of a dataset; raises KeyMissing when its files were deleted, StoreUnavailable when they are
    damaged.
    """
    classes = [label for label, _ in dataset.classes]
    drawn = _array(store, dataset, "drawn") if "drawn" in dataset.files else None
    labels, vectors = _array(store, dataset, "labels"), partial(KeptVectors, store, dataset.documents)
    return Documents(_rows(store, dataset), labels, classes, open_ids(store, dataset), drawn, vectors)


def open_ids(store: Store, dataset: Dataset) -> Ids:
    """The ids of the documents alone; raises as ``open_documents``."""
    return Ids(_path(store, dataset, "ids") if "ids" in dataset.files else None, dataset.n_documents)


def open_fields(store: Store, dataset: Dataset) -> StoredFields:
    """The extra fields of the documents alone; raises as ``open_documents``."""
    if not dataset.fields:
        return StoredFields([], None)
    return StoredFields(dataset.fields, TextRows(_array(store, dataset, INDPTR), _array(store, dataset, LINES)))


def _rows(store: Store, dataset: Dataset) -> Rows:
    if dataset.kind == "parts":
        return PartRows(
            {
                part.name: _part(store, dataset, part.kind, part.n_features, partial(content_of, part.name))
                for part in dataset.parts
            }
        )
    return _part(store, dataset, dataset.kind, dataset.n_features, str)


def _part(
    store: Store, dataset: Dataset, kind: PartKind, n_features: int | None, name: Callable[[str], str]
) -> RowsOfKind:
    """The rows of a part; ``name`` gives the names of its files by content."""
    indptr = _array(store, dataset, name("indptr"))
    if kind == "text":
        return TextRows(indptr, _array(store, dataset, name("text")))
    rows = SparseRows(
        indptr, _array(store, dataset, name("indices")), _array(store, dataset, name("values")), n_features or 0
    )
    if kind == "features":
        return NamedRows(rows, StoredNames(_path(store, dataset, name("names")), rows.n_features))
    return rows


def _path(store: Store, dataset: Dataset, name: str) -> Path:
    return store.local(dataset.files[name])


def _array(store: Store, dataset: Dataset, name: str) -> NDArray[Any]:
    return open_array(_path(store, dataset, name))


Classes = list[tuple[Label, int]]
"""classes with the number of documents labeled with each, sorted"""


def changed_labels(
    documents: Documents, labels: Mapping[int, Label | None], most: int | None = None
) -> tuple[Classes, NDArray[np.int32]]:
    """The classes that are left, and the class indices of all documents, after labels by position have changed; None
    removes a label.

    Integers sort before strings, should there be both. Raises LimitExceeded for more than ``most`` classes.
    """
    numbers: dict[Any, int] = {
        None: UNLABELED,
        **{label: class_index for class_index, label in enumerate(documents.classes)},
    }
    fresh = count(len(documents.classes))
    class_indices = np.array(documents.class_indices)
    for position, label in labels.items():
        if label not in numbers:
            numbers[label] = next(fresh)
        class_indices[position] = numbers[label]
    counts = np.bincount(class_indices + 1, minlength=len(numbers))[1:]
    present: list[Any] = [
        label for label, class_index in numbers.items() if class_index != UNLABELED and counts[class_index]
    ]
    if most is not None and len(present) > most:
        raise LimitExceeded("classes", most)
    final = np.full(len(numbers), UNLABELED, np.int32)
    ordered = sorted(present, key=lambda label: (isinstance(label, str), label))
    final[[numbers[label] for label in ordered]] = np.arange(len(ordered))
    return [(label, int(counts[numbers[label]])) for label in ordered], final[class_indices]


def annotated(documents: Documents, answers: Mapping[int, Answer]) -> Documents:
    """The documents with the labels that people gave them, by position, in place of their own.

    Skipped documents keep their own.
    """
    labels = {position: answer.label for position, answer in answers.items() if answer.label is not None}
    if not labels:
        return documents
    classes, class_indices = changed_labels(documents, labels)
    drawn = np.zeros(len(class_indices), np.int8) if documents.drawn is None else np.array(documents.drawn)
    for position in labels:
        drawn[position] = answers[position].draw
    known = drawn if (drawn != Draw.UNKNOWN).any() else None
    return documents._replace(class_indices=class_indices, classes=[label for label, _ in classes], drawn=known)
