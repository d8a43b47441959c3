"""Labels, ids and texts of documents in arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.codecs.arrays.archive import Array, invalid_array
from storage.records import Label

Arrays = Mapping[str, Array]

_LARGEST_WHOLE = 2**53


def ids_of(array: Array, n_rows: int) -> list[str]:
    """The next ids; integers are ids as decimals."""
    return texts_of(array, n_rows) if array.dtype.kind == "U" else list(map(str, array.read(n_rows).tolist()))


def labels_of(arrays: Arrays, n_rows: int) -> list[Label | None]:
    """The next labels of arrays that may have some."""
    if "labels" not in arrays:
        return [None] * n_rows
    if arrays["labels"].dtype.kind == "f":
        return _whole_labels(arrays["labels"].read(n_rows))
    if "labeled" not in arrays:
        return [text or None for text in texts_of(arrays["labels"], n_rows)]
    labels, labeled = arrays["labels"].read(n_rows).tolist(), arrays["labeled"].read(n_rows).tolist()
    return [label if known else None for label, known in zip(labels, labeled, strict=True)]


def _whole_labels(labels: NDArray[Any]) -> list[Label | None]:
    """Integers, as floats because some are missing: those are NaN."""
    known = labels[~np.isnan(labels)]
    wrong = known[(known != np.floor(known)) | (np.abs(known) > _LARGEST_WHOLE)]
    if len(wrong):
        raise invalid_array(
            "labels", f"{wrong[0]!s} is not an integer; among floats NaN is unlabeled, all others must be whole numbers"
        )
    return [None if label != label else int(label) for label in labels.tolist()]


def texts_of(array: Array, n_rows: int) -> list[str]:
    """The next strings; raises InvalidDocuments for what is not Unicode."""
    try:
        texts: list[str] = array.read(n_rows).tolist()
        "".join(texts).encode()
    except (ValueError, UnicodeError) as error:
        raise invalid_array(array.name, "has characters that are not Unicode") from error
    return texts
