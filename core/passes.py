"""Passes over the rows: in slices, shared among threads, one right-hand side or several at a time."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from core import blocks, loops
from core.rows import SparseRows

Vector = NDArray[np.float64]

SLICE = 1 << 24
"""Most nonzeros times right-hand sides between two looks at the observer: about 20 ms on one current core."""
_CHUNKS = 4
_SERIAL = 1 << 15
_CACHE = 1 << 20


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
    """Wanted and answered: ``Xᵀ weights``."""

    weights: Vector


class Passes:
    """The passes over one matrix, with the threads that make them.

    ``between`` is called between slices; what it raises ends the pass. Which thread adds up which rows is fixed, so results do not depend on
    timing.
    """

    def __init__(self, rows: SparseRows, threads: int | None, between: Callable[[], None]) -> None:
        self._rows, self._between = rows, between
        small = rows.n_nonzeros + rows.n_rows < _SERIAL
        self._threads = 1 if small else threads or len(os.sched_getaffinity(0))
        self._executor = ThreadPoolExecutor(self._threads - 1) if self._threads > 1 else None
        # BLAS threads go on spinning after a dot product and would take the core that the next pass needs: measured, twice the time.
        self._blas = threadpool_limits(1, "blas") if self._threads > 1 else None
        self._slices = self._cut(SLICE)
        self._partial = np.zeros((self._threads, rows.n_features + 1))

    def close(self) -> None:
        """End the threads."""
        if self._executor:
            self._executor.shutdown()
        if self._blas:
            self._blas.restore_original_limits()

    def scores(self, request: Scores) -> None:
        """``X p`` on some rows."""
        self._over_rows(self._slices, lambda start, stop, _: loops.score_rows(*self._rows[:3], start, stop, *request))

    def adjoint(self, request: Adjoint) -> Vector:
        """``Xᵀ weights``."""
        return self._accumulate(loops.adjoint_rows, *request)

    def product(self, request: Product) -> Vector:
        """``Xᵀ(weights ∘ X p)`` of one right-hand side."""
        return self._accumulate(loops.product_rows, *request)

    def products(self, requests: Sequence[Product]) -> list[Vector]:
        """The same of several: where it pays, up to blocks.WIDTH to a pass, so that a row and its column indices are read once for all of them.

        It pays while a block stays in a core's own cache (measured: three times as fast at 500 columns, slower than one by one at 76,000).
        """
        if (self._rows.n_features + 1) * blocks.LINE > _CACHE:
            return [self.product(request) for request in requests]
        answers: list[Vector] = []
        for first in range(0, len(requests), blocks.WIDTH):
            together = requests[first : first + blocks.WIDTH]
            answers += self._block(together) if len(together) > 1 else [self.product(together[0])]
        return answers

    def _block(self, requests: Sequence[Product]) -> list[Vector]:
        silent = requests[0]._replace(weights=np.zeros(self._rows.n_rows))
        padded = [*requests, *[silent] * (blocks.WIDTH - len(requests))]
        vectors, weights, scores = (blocks.aligned(length) for length in (self._rows.n_features + 1, self._rows.n_rows, self._rows.n_rows))
        blocks.pack(tuple(request.vector for request in padded), vectors)
        blocks.pack(tuple(request.weights for request in padded), weights)
        parts = tuple(blocks.aligned(len(vectors)) for _ in range(self._threads))
        self._over_rows(
            self._cut(SLICE // blocks.WIDTH),
            lambda start, stop, thread: blocks.product_rows(*self._rows[:3], start, stop, vectors, weights, scores, parts[thread]),
        )
        for position, request in enumerate(requests):
            blocks.unpack_scores(scores, weights, position, request.scores)
        answers = np.empty((blocks.WIDTH, len(vectors)))
        blocks.unpack_sum(parts, answers)
        return list(answers[: len(requests)])

    def _accumulate(self, loop: Any, *arguments: Vector) -> Vector:
        self._partial[:] = 0.0
        self._over_rows(self._slices, lambda start, stop, thread: loop(*self._rows[:3], start, stop, *arguments, self._partial[thread]))
        return np.asarray(self._partial.sum(axis=0))

    def _over_rows(self, slices: Sequence[Sequence[int]], work: Callable[[int, int, int], None]) -> None:
        """``work(start, stop, thread)`` over all rows, slice by slice."""
        for bounds in slices:
            if self._executor is None:
                self._share(work, bounds, 0)
            else:
                others = [self._executor.submit(self._share, work, bounds, thread) for thread in range(1, self._threads)]
                self._share(work, bounds, 0)
                for other in others:
                    other.result()
            if len(slices) > 1:
                self._between()

    def _share(self, work: Callable[[int, int, int], None], bounds: Sequence[int], thread: int) -> None:
        """One thread's rows of a slice: every so-many-th chunk, so that rows without weight are shared fairly."""
        for chunk in range(thread, len(bounds) - 1, self._threads):
            if bounds[chunk] < bounds[chunk + 1]:
                work(bounds[chunk], bounds[chunk + 1], thread)

    def _cut(self, nonzeros: int) -> list[list[int]]:
        """Row bounds of the chunks of each slice, with about the same number of nonzeros each (a row weighs at least one)."""
        weight = self._rows.indptr - self._rows.indptr[0] + np.arange(len(self._rows.indptr))
        n_slices = max(1, -(-int(weight[-1]) // nonzeros))
        per_slice = self._threads * _CHUNKS if self._threads > 1 else 1
        bounds = np.searchsorted(weight, np.linspace(0, weight[-1], n_slices * per_slice + 1).round())
        bounds[-1] = self._rows.n_rows
        return [bounds[k * per_slice : (k + 1) * per_slice + 1].tolist() for k in range(n_slices)]
