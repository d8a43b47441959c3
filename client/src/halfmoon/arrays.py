"""Matrices of NumPy and SciPy as a file of arrays. Neither is imported unless data of theirs are given."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any

from halfmoon.errors import InvalidData

_IN_MEMORY = 16 << 20
"""Bytes up to which a file of arrays is held in memory."""


def is_matrix(data: Any) -> bool:
    """Whether the data are a matrix of numbers: a sparse one, or an array of two dimensions of a numeric type."""
    if type(data).__module__.startswith("scipy.sparse"):
        return True
    return getattr(data, "ndim", 0) == 2 and getattr(getattr(data, "dtype", None), "kind", "") in ("b", "i", "u", "f")


def arrays_of(
    matrix: Any, labels: Sequence[str | int | None] | None, ids: Sequence[str | None] | None
) -> dict[str, Any]:
    """The arrays of a matrix with its labels and ids, by their names in an npz file; raises InvalidData."""
    import numpy

    arrays: dict[str, Any] = {}
    if type(matrix).__module__.startswith("scipy.sparse"):
        rows = matrix.tocsr()
        rows.sum_duplicates()
        arrays |= {"indptr": rows.indptr, "indices": rows.indices, "data": rows.data, "shape": numpy.array(rows.shape)}
    else:
        arrays["X"] = matrix
    n_rows = int(matrix.shape[0])
    for name, values in (("labels", labels), ("ids", ids)):
        if values is not None and len(values) != n_rows:
            raise InvalidData(f"{name}: {len(values)} values for {n_rows} documents")
    if labels is not None:
        arrays |= _labels(labels)
    if ids is not None:
        arrays["ids"] = numpy.array([str(place) if id is None else id for place, id in enumerate(ids)])
    return arrays


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
