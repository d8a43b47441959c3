"""Parts of a selection's data: the frequent features of many documents, by which fractions are estimated and methods
are compared, and the labeled documents alone. The selected model has all."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.documents.space import MEMORY, Pages, Space
from core.problem.problem import Problem
from core.progress import Checkpoint
from core.selection.data import SelectionData
from core.selection.registry import MANY_ROWS

_SLICE = 1 << 21
_SHARE = 1 / 2_000
"""share of the rows that must have a feature"""


def with_frequent_features(data: SelectionData, checkpoint: Checkpoint) -> SelectionData:
    """The data without features that only few of many rows have; the same data if there are none.

    Comparing takes some hundred solutions for a class, selecting one. Nearly all terms of texts are in a handful of
    them: they make vectors long, and hardly move what methods are compared by. A sample of the rows would: the more
    unlabeled ones, the better are methods that learn from them. ``checkpoint`` is called between slices of the work;
    what it raises ends it.
    """
    rows = data.scaled.rows
    if rows.n_rows < MANY_ROWS:
        return data
    counts = np.zeros(rows.n_features, np.int64)
    for part in _parts(rows):
        counts += np.bincount(rows.columns(part.start, part.stop), minlength=rows.n_features)
        checkpoint()
    kept = counts >= _SHARE * rows.n_rows
    if kept.all() or not kept.any():
        return data
    return _with_rows(data, with_features(rows, kept, checkpoint, data.space), kept)


def labeled_alone(data: SelectionData, checkpoint: Checkpoint) -> SelectionData:
    """The labeled rows with the features that they have, for methods that learn from no others; the same data if all
    rows are labeled.

    ``checkpoint`` is called between slices of the work; what it raises ends it.
    """
    rows = data.scaled.rows.between(0, len(data.class_indices))
    if rows.n_rows == data.scaled.rows.n_rows:
        return data
    kept = np.zeros(rows.n_features, bool)
    for part in _parts(rows):
        kept[rows.columns(part.start, part.stop)] = True
        checkpoint()
    return _with_rows(data, rows if kept.all() else with_features(rows, kept, checkpoint, data.space), kept)


def _with_rows(data: SelectionData, rows: SparseRows, kept: NDArray[np.bool_]) -> SelectionData:
    """The data with these rows instead, the labeled ones first as before, with some of the features."""
    scaled = data.scaled._replace(rows=rows, scales=data.scaled.scales[kept], centre=data.scaled.centre[kept])
    whole = Problem.of(rows, data.problems[0].y, data.problems[0].costs[: rows.n_rows], data.problems[0].seed)
    return replace(
        data,
        scaled=scaled,
        columns=np.flatnonzero(kept),
        problems=[replace(whole, y=problem.y) for problem in data.problems],
    )


def with_features(
    rows: SparseRows, kept: NDArray[np.bool_], checkpoint: Checkpoint, space: Space = MEMORY
) -> SparseRows:
    """The rows with some of their features alone, a mask of shape (n_features,), which are numbered anew; the copy lies
    in ``space``.
    """
    columns = (np.cumsum(kept) - 1).astype(np.uint32)
    indptr = np.zeros(rows.n_rows + 1, np.int64)
    n_nonzeros = sum(int(np.count_nonzero(kept[rows.columns(part.start, part.stop)])) for part in _parts(rows))
    indices, values = space.zeros(n_nonzeros, np.uint32), space.zeros(n_nonzeros, np.float32)
    copied = Pages(indices), Pages(values)
    done = 0
    for start, stop in rows.slices(_SLICE):
        part = slice(int(rows.indptr[start]), int(rows.indptr[stop]))
        found = rows.columns(part.start, part.stop)
        chosen = kept[found]
        ends = np.concatenate([[0], np.cumsum(chosen)])
        indptr[start + 1 : stop + 1] = done + ends[rows.indptr[start + 1 : stop + 1] - part.start]
        following = done + int(ends[-1])
        indices[done:following] = columns[found[chosen]]
        values[done:following] = rows.values[part][chosen]
        for pages in copied:
            pages.release(done, following)
        done = following
        checkpoint()
    return SparseRows(indptr, indices, values, int(np.count_nonzero(kept)))


def _parts(rows: SparseRows) -> Iterator[slice]:
    """The nonzeros, some million at a time."""
    return (slice(int(rows.indptr[start]), int(rows.indptr[stop])) for start, stop in rows.slices(_SLICE))
