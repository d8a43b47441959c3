"""Feature scaling: rows of mean square norm 1, on which λ means the same for all data; rows that store every feature
are centred, too.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import FullRows, SparseRows
from core.documents.space import MEMORY, Pages, Space
from core.progress import Checkpoint

_FEW = 4.0
"""participation ratio up to which few features dominate: then every feature is brought to one scale"""
_SLICE = 1 << 21
_NEAR = 0.05
"""distance of the mean square norm from 1 within which rows that are not centred are left as they are"""
_CONSTANT = 1e-12
"""share of a feature's mean square up to which its variance is rounding"""


class ScaledRows(NamedTuple):
    """Centred rows, their features multiplied by scales; the mean square norm of a row is 1, or within _NEAR of it
    where the rows were left as they came.
    """

    rows: SparseRows
    scales: NDArray[np.float64]
    """shape (n_features,); coefficients on ``rows`` times these are coefficients on the original rows"""
    centre: NDArray[np.float64]
    """shape (n_features,): what is taken off the original rows; zeros if nothing is"""
    equalised: bool
    """whether every feature has a scale of its own"""


def scale_features(
    rows: SparseRows, checkpoint: Checkpoint, space: Space = MEMORY, *, centred: bool = True
) -> ScaledRows:
    """Scale the rows for a selection.

    With ``centred``, rows that store every feature are centred by the features' means. What all rows have in common
    tells nothing apart, and would be most of their squares: temperatures around 300 would have one scale with what
    moves them by 10. Text is not: its zeros would be zeros no more. Few features may carry nearly all of the squares,
    as counts do beside shares: the participation ratio ``(Σ m)² / Σ m²`` of the features' mean squares m is then at
    most 4. A regulariser would leave the other features out, so each is divided by its root mean square. Text, whose
    energy is spread over many terms, keeps the proportions of its features: rare terms would be blown up.
    ``checkpoint`` is called between slices of some million nonzeros; what it raises ends the work. Values that are
    scaled lie in ``space``.
    """
    energies, centre = _mean_squares(rows, checkpoint, centred=centred and isinstance(rows, FullRows))
    total = float(energies.sum())
    if not (np.isfinite(total) and total > 0):
        return ScaledRows(rows, np.ones(rows.n_features), np.zeros(rows.n_features), False)
    equalised = float(((energies / total) ** 2).sum()) >= 1 / _FEW
    scales = (
        np.where(energies > 0, 1.0, 0.0) / np.sqrt(np.where(energies > 0, energies, 1.0))
        if equalised
        else np.ones(rows.n_features)
    )
    norm = float((energies * scales**2).sum())
    if not (equalised or centre.any()) and abs(norm - 1.0) <= _NEAR:
        return ScaledRows(rows, scales, centre, False)
    scales = scales / np.sqrt(norm)
    values = space.zeros(len(rows.values), rows.values.dtype)
    pages = Pages(values)
    for part in _slices(rows):
        columns = rows.columns(part.start, part.stop)
        values[part] = (rows.values[part] - centre[columns]) * scales[columns]
        pages.release(part.start, part.stop)
        checkpoint()
    return ScaledRows(rows._replace(values=values), scales, centre, equalised)


def _mean_squares(
    rows: SparseRows, checkpoint: Checkpoint, *, centred: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each feature the mean square about its centre, and the centre: the mean or, if not ``centred``, 0."""
    squares, centre = np.zeros(rows.n_features), np.zeros(rows.n_features)
    for part in _slices(rows):
        columns, values = rows.columns(part.start, part.stop), rows.values[part].astype(np.float64)
        squares += np.bincount(columns, values**2, rows.n_features)
        if centred:
            centre += np.bincount(columns, values, rows.n_features)
        checkpoint()
    squares /= max(1, rows.n_rows)
    centre /= max(1, rows.n_rows)
    variances = squares - centre * centre
    return np.where(variances > _CONSTANT * squares, variances, 0.0), centre


def _slices(rows: SparseRows) -> Iterator[slice]:
    """The nonzeros, some million at a time."""
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    yield from (slice(start, min(start + _SLICE, last)) for start in range(first, last, _SLICE))
