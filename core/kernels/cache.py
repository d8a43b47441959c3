"""Cache of kernel rows, bounded in bytes; the least recently used rows go first."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from core.kernels.function import Float32Matrix
from core.kernels.gram import Gram, Positions, Vector
from core.kernels.products import add_rows
from core.numerics.vectors import positions_of_largest
from core.numerics.width import WIDTH
from core.progress import Checkpoint

_FEWEST = 5 * WIDTH
"""rows kept however few bytes there are: what the solvers side by side may need at once"""
_MOST_UNCACHED = 1 << 23
"""most kernel values that are computed and added up without being kept: 32 MB"""
_BATCH = 2
"""20 ms of one thread that a batch of rows takes; it does not grow with the threads, since results would depend on
their number"""
_NOWHERE = -1


class Team(Protocol):
    """Threads that call things side by side."""

    n_threads: int

    def side_by_side(self, works: Iterable[Callable[[], None]]) -> None:
        """Call all of these."""


class Slots(NamedTuple):
    """The cache as compiled loops read it."""

    slot_of: NDArray[np.int32]
    """slot of each point's row, −1 without one, shape (n_points,)"""
    stamps: NDArray[np.int64]
    """time of the last use of each slot, shape (n_slots,)"""
    rows: Float32Matrix
    """kernel rows, shape (n_slots, n_points)"""
    diagonal: Vector
    """k(x, x) of each point, shape (n_points,)"""


class RowCache:
    """The kernel rows of ``gram`` that were used last, shared by all solvers that work on these points.

    Time is counted in calls of ``fetch``, and batches do not depend on the number of threads: so neither does what is
    kept. ``checkpoint`` is called between batches.
    """

    def __init__(self, gram: Gram, most_bytes: int, team: Team, checkpoint: Checkpoint) -> None:
        self.gram, self.now = gram, 0
        self._team, self._checkpoint = team, checkpoint
        n_slots = min(max(_FEWEST, most_bytes // (4 * max(1, gram.n_points))), gram.n_points)
        rows = np.empty((n_slots, gram.n_points), np.float32)
        self.slots = Slots(np.full(gram.n_points, _NOWHERE, np.int32), np.zeros(n_slots, np.int64), rows, gram.diagonal)
        self._row_of = np.full(n_slots, _NOWHERE, np.int64)
        self._used = 0
        if gram.weights is not None and gram.fits_float32:
            weighted = np.flatnonzero(gram.weights)
            gram.set_mean(self.weighted_sum(weighted, gram.weights[weighted])[:-1])
            self.slots.rows[: self._used, -1] = gram.mean[self._row_of[: self._used]]

    @property
    def batch_rows(self) -> int:
        """The most rows that a solver requests at once: quick, and few enough to leave room for other solvers' rows."""
        return max(2, min(self.gram.height * _BATCH, len(self._row_of) // (2 * WIDTH)))

    def missing(self, positions: Positions) -> Positions:
        """The points without a row here."""
        return np.asarray(positions[self.slots.slot_of[positions] == _NOWHERE], np.int64)

    def fetch(self, wanted: Positions) -> None:
        """Have the rows of different points: at most ``batch_rows`` of them, or as many as there are unused slots
        for."""
        self.now += 1
        held = self.slots.slot_of[wanted]
        self.slots.stamps[held[held != _NOWHERE]] = self.now
        positions = self.missing(wanted)
        slots = self._claimed_slots(len(positions))
        self.slots.stamps[slots] = self.now
        before = self._row_of[slots]
        self.slots.slot_of[before[before != _NOWHERE]] = _NOWHERE
        self._row_of[slots] = _NOWHERE
        self._side_by_side([partial(self._fill, positions[own], slots[own]) for own in self._shares(len(positions))])
        self.slots.slot_of[positions] = slots
        self._row_of[slots] = positions

    def weighted_sum(self, positions: Positions, weights: Vector) -> Vector:
        """``Σ_k weights[k] · row of positions[k]``, shape (n_points,).

        Rows that are not here are kept while there are unused slots.
        """
        out = np.zeros(self.gram.n_points)
        here = self.slots.slot_of[positions] != _NOWHERE
        most = max(1, _MOST_UNCACHED // max(1, self.gram.n_points))
        held, left = np.flatnonzero(here), np.flatnonzero(~here)
        for start in range(0, len(held), most):
            part = held[start : start + most]
            self._add(self.slots.rows, self.slots.slot_of[positions[part]].astype(np.int64), weights[part], out)
            self._checkpoint()
        most = min(self.gram.height * _BATCH, most)
        while len(left):
            unused = len(self._row_of) - self._used
            part, left = np.split(left, [min(most, unused or most)])
            block, where = self._fetched(positions[part]) if unused else self._computed(positions[part])
            self._add(block, where, weights[part], out)
            self._checkpoint()
        return out

    def _fetched(self, positions: Positions) -> tuple[Float32Matrix, Positions]:
        """The cache, with the rows of these points in it, and their slots."""
        self.fetch(positions)
        return self.slots.rows, self.slots.slot_of[positions].astype(np.int64)

    def _computed(self, positions: Positions) -> tuple[Float32Matrix, Positions]:
        """The rows of these points in a block that is not kept, and their places in it."""
        block = np.empty((len(positions), self.gram.n_points), np.float32)
        self._side_by_side(
            [partial(self.gram.fill, positions[own], block[own]) for own in self._shares(len(positions))]
        )
        return block, np.arange(len(positions))

    def _claimed_slots(self, count: int) -> Positions:
        """Slots to write to: unused ones, then those used longest ago."""
        unused = np.arange(self._used, min(self._used + count, len(self._row_of)))
        oldest = positions_of_largest(-self.slots.stamps[: self._used], count - len(unused))
        self._used += len(unused)
        return np.concatenate([unused, oldest])

    def _fill(self, positions: Positions, slots: Positions) -> None:
        if len(slots) and slots[-1] - slots[0] == len(slots) - 1 and (np.diff(slots) == 1).all():
            self.gram.fill(positions, self.slots.rows[slots[0] : slots[-1] + 1])
            return
        block = np.empty((len(positions), self.gram.n_points), np.float32)
        self.gram.fill(positions, block)
        self.slots.rows[slots] = block

    def _add(self, block: Float32Matrix, where: Positions, weights: Vector, out: Vector) -> None:
        """Each thread its own columns, so that the sums do not depend on the number of threads."""
        bounds = np.linspace(0, len(out), self._team.n_threads + 1).astype(int)
        works = [partial(add_rows, block, where, weights, int(a), int(b), out) for a, b in pairwise(bounds)]
        self._side_by_side(works)

    def _shares(self, count: int) -> list[slice]:
        """Even parts of a block, one a thread."""
        bounds = np.linspace(0, count, min(self._team.n_threads, count) + 1).astype(int)
        return [slice(int(a), int(b)) for a, b in pairwise(bounds)]

    def _side_by_side(self, works: Sequence[Callable[[], None]]) -> None:
        if works:
            self._team.side_by_side(works)
