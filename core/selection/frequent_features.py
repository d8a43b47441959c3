"""The frequent features of a large selection's documents, by which fractions are estimated and methods are compared. The selected model has all."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.problem.problem import Problem
from core.progress import Checkpoint
from core.selection.data import SelectionData

_SLICE = 1 << 21
_MANY_ROWS, _SHARE = 5_000, 1 / 2_000
"""rows from which on rare features are left out, and the share of the rows that must have a feature"""


def with_frequent_features(data: SelectionData, checkpoint: Checkpoint) -> SelectionData:
    """The data without features that only few of many rows have; the same data if there are none.

    Comparing takes some hundred solutions for a class, selecting one. Nearly all terms of texts are in a handful of them: they make vectors long, and
    hardly move what methods are compared by. A sample of the rows would: the more unlabeled ones, the better are methods that learn from them.
    ``checkpoint`` is called between slices of the work; what it raises ends it.
    """
    rows = data.scaled.rows
    if rows.n_rows < _MANY_ROWS:
        return data
    kept = np.bincount(rows.indices, minlength=rows.n_features) >= _SHARE * rows.n_rows
    checkpoint()
    if kept.all() or not kept.any():
        return data
    scaled = data.scaled._replace(rows=_with_features(rows, kept, checkpoint), scales=data.scaled.scales[kept])
    whole = Problem.of(scaled.rows, data.problems[0].y, seed=data.problems[0].seed)
    return replace(data, scaled=scaled, problems=[replace(whole, y=problem.y) for problem in data.problems])


def _with_features(rows: SparseRows, kept: NDArray[np.bool_], checkpoint: Checkpoint) -> SparseRows:
    """The rows with some of their features alone, a mask of shape (n_features,), which are numbered anew."""
    columns = (np.cumsum(kept) - 1).astype(np.uint32)
    lengths = np.zeros(rows.n_rows + 1, np.int64)
    indices, values = [], []
    for start, stop in rows.slices(_SLICE):
        part = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
        chosen = kept[rows.indices[part]]
        ends = np.concatenate([[0], np.cumsum(chosen)])
        lengths[start + 1 : stop + 1] = np.diff(ends[rows.indptr[start : stop + 1] - rows.indptr[start]])
        indices.append(columns[rows.indices[part][chosen]])
        values.append(rows.values[part][chosen])
        checkpoint()
    return SparseRows(np.cumsum(lengths), np.concatenate(indices), np.concatenate(values), int(np.count_nonzero(kept)))
