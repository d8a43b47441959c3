"""Passes over the rows: in slices, shared among threads, one right-hand side or several at a time."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import SparseRows
from core.engine import block_loops as blocks
from core.engine import csr_loops as loops
from core.engine.threads import Threads
from core.numerics.width import WIDTH
from core.progress import Checkpoint

Vector = NDArray[np.float64]

SLICE = 1 << 24
"""Most nonzeros times right-hand sides between two looks at the observer: about 20 ms on one current core."""
_CHUNKS = 4
_SERIAL = 1 << 15
_BLOCK = 2.5
"""a pass of a block takes as long as so many passes over all rows of one right-hand side, however few there are in it: measured"""


class Product(NamedTuple):
    """Wanted: ``q = X p`` written to ``scores`` on the rows with a weight; answered with ``Xᵀ(weights ∘ q)``."""

    vector: Vector
    weights: Vector
    scores: Vector


class Scores(NamedTuple):
    """Wanted: ``X p`` written to ``scores`` on the rows where ``skipped`` is 0; answered with None."""

    vector: Vector
    skipped: Vector
    scores: Vector


class Adjoint(NamedTuple):
    """Wanted: ``sums += Xᵀ weights``; answered with None."""

    weights: Vector
    sums: Vector


class Cut(NamedTuple):
    """Wanted: ``X p`` written to ``scores``; answered with ``Xᵀ(weights ∘ sides)`` of the rows with ``side · score < 1``.

    The side of a row is its label, or without one (0) the sign of its score, +1 for 0.
    """

    vector: Vector
    labels: Vector
    weights: Vector
    scores: Vector


class _Workspace(NamedTuple):
    """The blocks of a pass of several right-hand sides, kept from pass to pass: new pages would cost as much as the pass."""

    vectors: blocks.Block
    weights: blocks.Block
    scores: blocks.Block
    sums: tuple[blocks.Block, ...]
    """one a thread"""

    @classmethod
    def of(cls, n_rows: int, length: int, threads: int) -> Self:
        sums = tuple(blocks.aligned(length) for _ in range(threads))
        return cls(blocks.aligned(length), blocks.aligned(n_rows), blocks.aligned(n_rows), sums)


class Passes:
    """The passes over one matrix, with the threads that make them.

    ``checkpoint`` is called between slices; what it raises ends the pass. Which thread adds up which rows is fixed, so results do not depend on
    timing.
    """

    def __init__(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> None:
        self._rows, self._checkpoint = rows, checkpoint
        self._threads = Threads(1 if rows.n_nonzeros + rows.n_rows < _SERIAL else threads)
        self.n_threads, self.side_by_side = self._threads.count, self._threads.side_by_side
        self._slices = self._cut(SLICE)
        self._partial = np.zeros((self.n_threads, rows.n_features + 1))
        self._workspace: _Workspace | None = None

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def scores(self, request: Scores, alone: bool = False) -> None:
        """``X p`` on some rows; ``alone``: by the calling thread, while others are at something else."""
        if alone:
            self._one_thread(loops.score_rows, *request)
        else:
            self._over_rows(self._slices, lambda start, stop, _: loops.score_rows(*self._rows[:3], start, stop, *request))

    def adjoint(self, request: Adjoint, alone: bool = False) -> None:
        """``sums += Xᵀ weights``; ``alone`` as of scores."""
        weights, sums = request
        # clearing and adding up what threads have summed would cost more than to read few rows
        if alone or np.count_nonzero(weights) * self._rows.n_nonzeros <= _SERIAL * self._rows.n_rows:
            self._one_thread(loops.adjoint_rows, weights, sums)
        else:
            sums += self._accumulate(loops.adjoint_rows, weights)

    def cut(self, request: Cut) -> Vector:
        """Scores, and the sum of the rows that fall short of the margin."""
        return self._accumulate(loops.cut_rows, *request)

    def product(self, request: Product, alone: bool = False) -> Vector:
        """``Xᵀ(weights ∘ X p)`` of one right-hand side; ``alone`` as of scores."""
        if not alone:
            return self._accumulate(loops.product_rows, *request)
        sums = np.zeros(self._rows.n_features + 1)
        self._one_thread(loops.product_rows, *request, sums)
        return sums

    def is_light(self, request: Product) -> bool:
        """Whether a product reads so few rows that it costs less alone than its place in a full block."""
        return share(request.weights) * WIDTH < _BLOCK

    def products(self, requests: Sequence[Product]) -> list[Vector]:
        """The same of several, up to WIDTH to a pass, in which a row and its column indices are read once for all of them.

        Alone, each would read the rows with a weight of its own; those that would read fewer than a block costs are read alone.
        """
        answers: list[Vector] = []
        for first in range(0, len(requests), WIDTH):
            together = requests[first : first + WIDTH]
            apart = sum(share(request.weights) for request in together) < _BLOCK
            answers += [self.product(request) for request in together] if apart else self._block(together)
        return answers

    def _block(self, requests: Sequence[Product]) -> list[Vector]:
        rows, length = self._rows, self._rows.n_features + 1
        space = self._workspace = self._workspace or _Workspace.of(rows.n_rows, length, self.n_threads)
        vectors, weights, scores = (blocks.padded(columns) for columns in zip(*requests, strict=True))
        self.side_by_side(
            [partial(blocks.pack, vectors, *part, space.vectors) for part in self._parts(length)]
            + [partial(blocks.pack, weights, *part, space.weights) for part in self._parts(rows.n_rows)]
            + [partial(sums.fill, 0.0) for sums in space.sums]
        )
        self._over_rows(
            self._cut(SLICE // WIDTH),
            lambda start, stop, thread: blocks.product_rows(*rows[:3], start, stop, space.vectors, space.weights, space.scores, space.sums[thread]),
        )
        answers = np.empty((len(requests), length))
        self.side_by_side(
            [partial(blocks.unpack_sum, space.sums, *part, answers) for part in self._parts(length)]
            + [partial(blocks.unpack_scores, space.scores, space.weights, *part, scores) for part in self._parts(rows.n_rows)]
        )
        return list(answers)

    def _one_thread(self, loop: Any, *arguments: Vector) -> None:
        """All rows by the calling thread."""
        for bounds in self._slices:
            loop(*self._rows[:3], bounds[0], bounds[-1], *arguments)
            self._checkpoint()

    def _parts(self, length: int) -> list[tuple[int, int]]:
        """A range in as many parts as there are threads."""
        return [(length * part // self.n_threads, length * (part + 1) // self.n_threads) for part in range(self.n_threads)]

    def _accumulate(self, loop: Any, *arguments: Vector) -> Vector:
        self._partial[:] = 0.0
        self._over_rows(self._slices, lambda start, stop, thread: loop(*self._rows[:3], start, stop, *arguments, self._partial[thread]))
        return np.asarray(self._partial.sum(axis=0))

    def _over_rows(self, slices: Sequence[Sequence[int]], work: Callable[[int, int, int], None]) -> None:
        """``work(start, stop, thread)`` over all rows, slice by slice."""
        for bounds in slices:
            self.side_by_side([partial(self._share, work, bounds, thread) for thread in range(self.n_threads)])
            if len(slices) > 1:
                self._checkpoint()

    def _share(self, work: Callable[[int, int, int], None], bounds: Sequence[int], thread: int) -> None:
        """One thread's rows of a slice: every so-many-th chunk, so that rows without weight are shared fairly."""
        for chunk in range(thread, len(bounds) - 1, self.n_threads):
            if bounds[chunk] < bounds[chunk + 1]:
                work(bounds[chunk], bounds[chunk + 1], thread)

    def _cut(self, nonzeros: int) -> list[list[int]]:
        """Row bounds of the chunks of each slice, with about the same number of nonzeros each (a row weighs at least one)."""
        weight = self._rows.indptr - self._rows.indptr[0] + np.arange(len(self._rows.indptr))
        n_slices = max(1, -(-int(weight[-1]) // nonzeros))
        per_slice = self.n_threads * _CHUNKS if self.n_threads > 1 else 1
        bounds = np.searchsorted(weight, np.linspace(0, weight[-1], n_slices * per_slice + 1).round())
        bounds[-1] = self._rows.n_rows
        return [bounds[k * per_slice : (k + 1) * per_slice + 1].tolist() for k in range(n_slices)]


def share(weights: Vector) -> float:
    """The share of the rows that a pass with these weights reads."""
    return float(np.count_nonzero(weights)) / max(1, len(weights))
