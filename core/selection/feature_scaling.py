"""Feature scaling: rows of mean square norm 1, on which λ means the same for all data."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.documents.space import MEMORY, Pages, Space
from core.progress import Checkpoint

_FEW = 4.0
"""participation ratio up to which few features dominate: then every feature is brought to one scale"""
_SLICE = 1 << 21
_NEAR = 0.05
"""distance of the mean square norm from 1 within which rows are left as they are"""


class ScaledRows(NamedTuple):
    """Rows with every feature multiplied by its scale; the mean square norm of a row is 1."""

    rows: SparseRows
    scales: NDArray[np.float64]
    """shape (n_features,); coefficients on ``rows`` times these are coefficients on the original rows"""
    equalised: bool
    """whether every feature has a scale of its own"""


def scale_features(rows: SparseRows, checkpoint: Checkpoint, space: Space = MEMORY) -> ScaledRows:
    """Scale the rows for a selection.

    Few features may carry nearly all of the squared values, as counts do beside shares: the participation ratio ``(Σ m)² / Σ m²`` of the features'
    mean squares m is then at most 4. A regulariser would leave the other features out, so each is divided by its root mean square. Text, whose
    energy is spread over many terms, keeps the proportions of its features: rare terms would be blown up. ``checkpoint`` is called between slices of
    some million nonzeros; what it raises ends the work. Values that are scaled lie in ``space``.
    """
    energies = np.zeros(rows.n_features)
    for part in _slices(rows):
        energies += np.bincount(rows.columns(part.start, part.stop), rows.values[part].astype(np.float64) ** 2, rows.n_features)
        checkpoint()
    energies /= max(1, rows.n_rows)
    total = float(energies.sum())
    if not (np.isfinite(total) and total > 0):
        return ScaledRows(rows, np.ones(rows.n_features), False)
    equalised = float(((energies / total) ** 2).sum()) >= 1 / _FEW
    scales = np.where(energies > 0, 1.0, 0.0) / np.sqrt(np.where(energies > 0, energies, 1.0)) if equalised else np.ones(rows.n_features)
    norm = float((energies * scales**2).sum())
    if not equalised and abs(norm - 1.0) <= _NEAR:
        return ScaledRows(rows, scales, False)
    scales = scales / np.sqrt(norm)
    values = space.zeros(len(rows.values), rows.values.dtype)
    pages = Pages(values)
    for part in _slices(rows):
        values[part] = rows.values[part] * scales[rows.columns(part.start, part.stop)]
        pages.release(part.start, part.stop)
        checkpoint()
    return ScaledRows(rows._replace(values=values), scales, equalised)


def _slices(rows: SparseRows) -> Iterator[slice]:
    """The nonzeros, some million at a time."""
    first, last = int(rows.indptr[0]), int(rows.indptr[-1])
    yield from (slice(start, min(start + _SLICE, last)) for start in range(first, last, _SLICE))
