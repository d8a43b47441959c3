"""A sealed dataset, opened for reading."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.rows import SparseRows
from workers.contract import Dataset, Label
from workers.datasets.arrays import open_array
from workers.datasets.ids import Ids
from workers.storage import Store


class Documents(NamedTuple):
    """Rows and labels of a dataset, memory-mapped: opening costs nothing but the verification of the files."""

    rows: SparseRows
    codes: NDArray[np.int32]
    """shape (n_documents,): position in ``classes``, or -1 for an unlabeled document"""
    classes: list[Label]
    ids: Ids


def open_documents(store: Store, dataset: Dataset) -> Documents:
    """The documents of a dataset; raises KeyMissing when its files are gone, StoreUnavailable when they are damaged."""

    def path(name: str) -> Path:
        return store.local(dataset.files[name])

    rows = SparseRows(open_array(path("indptr")), open_array(path("indices")), open_array(path("values")), dataset.n_features)
    return Documents(rows, open_array(path("labels")), [label for label, _ in dataset.classes], open_ids(store, dataset))


def open_ids(store: Store, dataset: Dataset) -> Ids:
    """The ids of the documents alone; raises as ``open_documents``."""
    return Ids(store.local(dataset.files["ids"]) if "ids" in dataset.files else None, dataset.n_documents)
