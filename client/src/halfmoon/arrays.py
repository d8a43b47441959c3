"""Matrices of NumPy and SciPy as a file of arrays. Neither is imported unless data of theirs are given."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from halfmoon.errors import InvalidData

_MATRIX = 2
"""dimensions of an indicator matrix"""
_IN_MEMORY = 16 << 20
"""Bytes up to which a file of arrays is held in memory."""


def is_matrix(data: Any) -> bool:
    """Whether the data are a matrix of numbers: a sparse one, or an array of two dimensions of a numeric type."""
    return type(data).__module__.startswith("scipy.sparse") or (
        getattr(data, "ndim", 0) == 2 and getattr(getattr(data, "dtype", None), "kind", "") in ("b", "i", "u", "f")
    )


def lists_of(labels: Any) -> Any:
    """An indicator matrix, as of scikit-learn, as a list of the classes of each row; other data as they are.

    The classes are the names of the columns of a frame, else numbers from 0. Raises InvalidData.
    """
    names = getattr(labels, "columns", None)
    if type(labels).__module__.startswith("scipy.sparse"):
        labels = labels.toarray()
    if names is None and getattr(labels, "ndim", 1) != _MATRIX:
        return labels
    classes = [*range(labels.shape[1])] if names is None else [*names]
    rows = (labels.to_numpy() if hasattr(labels, "to_numpy") else labels).tolist()
    odd = next((value for row in rows for value in row if value not in (0, 1)), None)
    if odd is not None:
        raise InvalidData(
            f"labels: an indicator matrix has 1 where a class applies and 0 where it does not, not {odd!r:.60}; give "
            "lists of labels, with None where they are not known"
        )
    return [[each for each, applies in zip(classes, row, strict=True) if applies] for row in rows]


def arrays_of(matrix: Any, columns: Mapping[str, Sequence[Any] | None]) -> dict[str, Any]:
    """The arrays of a matrix with its labels, weights and ids, by their names in an npz file; raises InvalidData."""
    import numpy

    arrays: dict[str, Any] = {}
    if type(matrix).__module__.startswith("scipy.sparse"):
        rows = matrix.tocsr()
        rows.sum_duplicates()
        arrays |= {"indptr": rows.indptr, "indices": rows.indices, "data": rows.data, "shape": numpy.array(rows.shape)}
    elif numpy.ma.is_masked(matrix):
        raise InvalidData("the matrix has masked numbers; fill them, as matrix.filled(0) does")
    else:
        arrays["X"] = matrix
    n_rows = int(matrix.shape[0])
    given = {name: values for name, values in columns.items() if values is not None}
    for name, values in given.items():
        if len(values) != n_rows:
            raise InvalidData(f"{name}: {len(values)} values for {n_rows} documents")
    if "label" in given:
        arrays |= _labels(given["label"])
    if "labels" in given:
        arrays |= _indicators(given["labels"])
    if "weight" in given:
        arrays["weights"] = numpy.array([1.0 if each is None else each for each in given["weight"]])
    if "id" in given:
        arrays["ids"] = numpy.array([str(place) if id is None else id for place, id in enumerate(given["id"])])
    return arrays


def _indicators(lists: Sequence[Sequence[str | int] | None]) -> dict[str, Any]:
    import numpy

    every = {label for labels in lists for label in labels or ()}
    if len({*map(type, every)}) > 1:
        raise InvalidData("labels are all texts or all integers")
    classes = sorted(every, key=str)
    places = {label: place for place, label in enumerate(classes)}
    indicators = numpy.zeros((len(lists), len(classes)), bool)
    for row, labels in enumerate(lists):
        indicators[row, [places[label] for label in labels or ()]] = True
    names = numpy.array(classes) if classes else numpy.array([], str)
    return {"indicators": indicators, "classes": names, "labeled": numpy.array([each is not None for each in lists])}


@contextmanager
def npz_of(arrays: Mapping[str, Any]) -> Iterator[IO[bytes]]:
    """A file of these arrays, to be read from its beginning."""
    import numpy

    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as file:
        numpy.savez(file, **arrays)
        file.seek(0)
        yield file


def _labels(labels: Sequence[str | int | None]) -> dict[str, Any]:
    import numpy

    known = [label for label in labels if label is not None]
    if known and all(isinstance(label, int) for label in known):
        values = numpy.array([0 if label is None else label for label in labels], numpy.int64)
        return {"labels": values, "labeled": numpy.array([label is not None for label in labels])}
    if not all(isinstance(label, str) for label in known):
        raise InvalidData("labels are all texts or all integers")
    return {"labels": numpy.array(["" if label is None else label for label in labels], str)}
