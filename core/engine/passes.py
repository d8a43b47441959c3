"""Engines, which hold the rows of a training, and their passes over the rows: in parts, shared among threads, one
right-hand side or several at a time.

The rows are cut into parts by their nonzeros and features alone (core.engine.parts). Each part has sums of its own, and
these are added in the order of the parts. So what a pass answers has the same bits whatever the number of threads, and
which engine answers, and whether its right-hand side goes alone or beside others. A part is read in slices, between
which the observer is asked. Where rows are mapped files, the parts that come next are read ahead.

Rows that are not in the memory of this process are in its address space all the same, for what reads few of them, or is
no pass.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from core.documents.rows import MEMORY, FullRows, Pages, Space, SparseRows
from core.engine import EngineName, block_loops, csr_loops, full_loops
from core.engine.parts import part_ranges
from core.engine.requests import Adjoint, Adjoints, AllScores, Cut, Product, Request, Scores, Vector, share
from core.numerics.elementary import Matrix
from core.numerics.width import WIDTH
from core.progress import Checkpoint
from core.threads import Threads

SLICE = 1 << 24
"""Most nonzeros times right-hand sides between two looks at the observer: about 20 ms on one current core."""
_SERIAL = 1 << 15
"""nonzeros and rows below which threads cost more than they gain"""
_BLOCK = 2.5
"""a pass of a block takes as long as so many passes over all rows of one right-hand side, however few there are in it:
measured"""

_TILE = 1 << 16
"""numbers of full rows that several right-hand sides multiply one after another, while they are in the processor's
cache"""


class _Workspace(NamedTuple):
    """The blocks of a pass of several right-hand sides, kept from pass to pass: new pages would cost as much as the
    pass.
    """

    vectors: block_loops.Block
    weights: block_loops.Block
    scores: block_loops.Block
    sums: block_loops.Block
    """shape (n_parts, length, WIDTH); zeros between passes"""

    @classmethod
    def of(cls, n_rows: int, length: int, n_parts: int) -> Self:
        vectors, weights, scores = (block_loops.aligned(size) for size in (length, n_rows, n_rows))
        return cls(vectors, weights, scores, block_loops.aligned(n_parts, length))


class PageCache:
    """The pages of rows that lie in mapped files: told before and after a pass reads rows. Rows in memory have none."""

    def __init__(self, rows: SparseRows, resident_bytes: int | None) -> None:
        """The first ``resident_bytes`` may stay in the page cache; None: as many as the system likes."""
        arrays = [rows.values] if isinstance(rows, FullRows) else [rows.indices, rows.values]
        self._indptr, self._pages = rows.indptr, [Pages(array) for array in arrays]
        self._bytes, self._resident_bytes = sum(array.itemsize for array in arrays), resident_bytes

    def ahead(self, start: int, stop: int) -> None:
        """Rows ``start`` to ``stop`` will be read soon."""
        for pages in self._pages:
            pages.read_ahead(*self._span(start, stop))

    def behind(self, start: int, stop: int) -> None:
        """These rows have been read, and will not be before the next pass."""
        first, last = self._span(start, stop)
        if self._resident_bytes is not None and (last - int(self._indptr[0])) * self._bytes > self._resident_bytes:
            for pages in self._pages:
                pages.forget(first, last)

    def _span(self, start: int, stop: int) -> tuple[int, int]:
        return int(self._indptr[start]), int(self._indptr[stop])


class Passes:
    """The passes over one matrix in the address space of this process, with the threads that make them.

    ``checkpoint`` is called between slices, what it raises ends the pass; ``resident_bytes`` as in PageCache;
    ``n_parts`` is for rows that are parts of others.
    """

    def __init__(
        self,
        rows: SparseRows,
        threads: int | None,
        checkpoint: Checkpoint,
        resident_bytes: int | None = None,
        n_parts: int | None = None,
    ) -> None:
        self._rows, self._checkpoint = rows, checkpoint
        self._page_cache = PageCache(rows, resident_bytes)
        self._full = isinstance(rows, FullRows)
        self._loops: Any = full_loops if self._full else csr_loops
        self._arrays: tuple[Any, ...] = (rows.matrix.reshape(-1),) if isinstance(rows, FullRows) else rows.csr
        self._threads = Threads(1 if rows.n_nonzeros + rows.n_rows < _SERIAL else threads)
        self.n_threads, self.side_by_side = self._threads.count, self._threads.side_by_side
        parts = part_ranges(rows, n_parts)
        self._slices = [_slices_of(rows, *part, SLICE) for part in parts]
        self._block_slices = [_slices_of(rows, *part, SLICE // WIDTH) for part in parts]
        self._sums = np.zeros((len(parts), rows.n_features + 1))
        self._workspace: _Workspace | None = None

    def close(self) -> None:
        """End the threads."""
        self._threads.close()

    def answer(self, request: Request | None, alone: bool = False) -> Vector | None:
        """The answer to a request for a pass, None where it was written; ``alone``: by the calling thread, while others
        are at something else. Raises TypeError for any other request.
        """
        match request:
            case Product():
                return self.product(request, alone)
            case Scores():
                self.scores(request, alone)
            case AllScores(requests):
                self.all_scores(requests, alone)
            case Adjoint():
                self.adjoint(request, alone)
            case Adjoints(requests):
                self.adjoints(requests, alone)
            case _:
                raise TypeError(f"{request!r} is no pass")
        return None

    def scores(self, request: Scores, alone: bool = False) -> None:
        """``X p`` on some rows; ``alone``: by the calling thread, while others are at something else."""
        self._over_parts(
            self._slices,
            lambda start, stop, _: self._loops.score_rows(*self._arrays, start, stop, *request),
            alone=alone,
        )

    def all_scores(self, requests: Sequence[Scores], alone: bool = False) -> None:
        """Answer several scores, up to WIDTH in one pass; ``alone`` as in scores."""
        for first in range(0, len(requests), WIDTH):
            vectors, skipped, scores = zip(*requests[first : first + WIDTH], strict=True)
            read = [(each == 0).astype(np.float64) for each in skipped]
            if self.suits_block(read, alone):
                self._sparse_block(block_loops.score_rows, 0, vectors, read, scores)
            else:
                for request in requests[first : first + WIDTH]:
                    self.scores(request, alone)

    def adjoint(self, request: Adjoint, alone: bool = False) -> None:
        """``sums += Xᵀ weights``; ``alone`` as in scores."""
        weights, sums = request
        if self.reads_few(request):
            self._over_parts(
                self._slices,
                lambda start, stop, _: self._loops.adjoint_rows(*self._arrays, start, stop, weights, sums),
                alone=True,
            )
        else:
            sums += self._accumulate(self._loops.adjoint_rows, weights, alone=alone)

    def adjoints(self, requests: Sequence[Adjoint], alone: bool = False) -> None:
        """Answer several adjoints, up to WIDTH in one pass; ``alone`` as in scores."""
        few = [each for each in requests if self.reads_few(each)]
        many = [each for each in requests if not self.reads_few(each)]
        for first in range(0, len(many), WIDTH):
            together = many[first : first + WIDTH]
            weights, sums = zip(*together, strict=True)
            if self.suits_block(weights, alone):
                found = self._sparse_block(block_loops.adjoint_rows, len(sums), (), weights, ())
                for own, answer in zip(sums, found, strict=True):
                    own += answer
            else:
                few += together
        for request in few:
            self.adjoint(request, alone)

    def reads_few(self, request: Adjoint) -> bool:
        """Whether rows are added to the sums one by one: to clear and add up the sums of parts would cost more than to
        read so few.
        """
        return bool(np.count_nonzero(request.weights) * self._rows.n_nonzeros <= _SERIAL * self._rows.n_rows)

    def cut(self, request: Cut) -> Vector:
        """Scores, and the sum of the rows that fall short of the margin."""
        return self._accumulate(self._loops.cut_rows, *request)

    def cuts(self, requests: Sequence[Cut]) -> list[Vector]:
        """Answer several cuts, one after the other."""
        return [self.cut(request) for request in requests]

    def product(self, request: Product, alone: bool = False) -> Vector:
        """``Xᵀ(weights ∘ X p)`` of one right-hand side; ``alone`` as of scores."""
        return self._accumulate(self._loops.product_rows, *request, alone=alone)

    def is_light(self, request: Product) -> bool:
        """Whether a product reads so few rows that it costs less alone than its place in a full block."""
        return share(request.weights) * WIDTH < _BLOCK

    def products(self, requests: Sequence[Product]) -> list[Vector]:
        """Answer several products, up to WIDTH in one pass: it reads each row and its column indices once.

        Alone, each would read the rows with a weight of its own; those that would read fewer than a block costs are
        read alone.
        """
        answers: list[Vector] = []
        for first in range(0, len(requests), WIDTH):
            together = requests[first : first + WIDTH]
            apart = sum(share(request.weights) for request in together) < _BLOCK
            answers += [self.product(request) for request in together] if apart else self._block(together)
        return answers

    def _block(self, requests: Sequence[Product]) -> list[Vector]:
        if self._full:
            return self._full_block(requests)
        return list(self._sparse_block(block_loops.product_rows, len(requests), *zip(*requests, strict=True)))

    def _full_block(self, requests: Sequence[Product]) -> list[Vector]:
        sums = np.empty((len(self._slices), len(requests), self._rows.n_features + 1))
        height = max(1, _TILE // self._rows.n_features)

        def multiply(start: int, stop: int, part: int) -> None:
            for first in range(start, stop, height):
                for request, out in zip(requests, sums[part], strict=True):
                    self._loops.product_rows(*self._arrays, first, min(first + height, stop), *request, out)

        self._over_parts(self._block_slices, multiply, sums)
        return [_added(sums[:, column]) for column in range(len(requests))]

    def suits_block(self, weights: Sequence[Vector], alone: bool) -> bool:
        """Whether rows with these weights are read in one pass for several right-hand sides, not one after another."""
        return not self._full and not alone and sum(map(share, weights)) >= _BLOCK

    def _sparse_block(
        self, loop: Any, n_sums: int, vectors: Sequence[Vector], weights: Sequence[Vector], scores: Sequence[Vector]
    ) -> Matrix:
        """A pass of up to WIDTH right-hand sides by a loop of block_loops. ``scores`` are written on the rows with a
        weight; the sums are returned, shape (n_sums, n_features + 1). There are no vectors, scores or sums of a loop
        that has none.
        """
        rows, length = self._rows, self._rows.n_features + 1
        space = self._workspace or _Workspace.of(rows.n_rows, length, len(self._slices))
        self._workspace = None  # a pass that is stopped leaves sums behind
        own, over_rows, over_features = block_loops.padded, self._spans(rows.n_rows), self._spans(length)
        works = [partial(block_loops.pack, own(weights), *span, space.weights) for span in over_rows]
        if vectors:
            works += [partial(block_loops.pack, own(vectors), *span, space.vectors) for span in over_features]
        self.side_by_side(works)
        self._over_parts(
            self._block_slices,
            lambda start, stop, part: loop(
                *rows.csr, start, stop, space.vectors, space.weights, space.scores, space.sums[part]
            ),
        )
        answers, works = np.empty((n_sums, length)), []
        if n_sums:
            works += [partial(block_loops.unpack_sums, space.sums, *span, answers) for span in over_features]
        if scores:
            works += [
                partial(block_loops.unpack_scores, space.scores, space.weights, *span, own(scores))
                for span in over_rows
            ]
        self.side_by_side(works)
        self._workspace = space
        return answers

    def _spans(self, length: int) -> list[tuple[int, int]]:
        """A range in as many spans as there are threads, for work that no sum depends on."""
        return [
            (length * span // self.n_threads, length * (span + 1) // self.n_threads) for span in range(self.n_threads)
        ]

    def _accumulate(self, loop: Any, *arguments: Vector, alone: bool = False) -> Vector:
        """The sums of all parts, added in the order of the parts."""
        if alone:
            return self._accumulate_alone(loop, *arguments)
        self._over_parts(
            self._slices,
            lambda start, stop, part: loop(*self._arrays, start, stop, *arguments, self._sums[part]),
            self._sums,
        )
        return _added(self._sums)

    def _accumulate_alone(self, loop: Any, *arguments: Vector) -> Vector:
        """The sums of all parts, read by the calling thread with sums of its own."""
        found, sums = np.zeros(self._sums.shape[1]), np.zeros(self._sums.shape[1])
        for number in range(len(self._slices)):
            sums[:] = 0.0
            self._read(number, lambda start, stop, _: loop(*self._arrays, start, stop, *arguments, sums))
            found += sums
        return found

    def _read(self, number: int, work: Callable[[int, int, int], None]) -> None:
        """One part by the calling thread."""
        self._read_ahead(number + 1)
        for start, stop in self._slices[number]:
            work(start, stop, number)
            self._page_cache.behind(start, stop)
            self._checkpoint()

    def _read_ahead(self, number: int) -> None:
        """Have a part read that comes soon, if there is one of this number."""
        if number < len(self._slices) and self._slices[number]:
            self._page_cache.ahead(self._slices[number][0][0], self._slices[number][-1][1])

    def _over_parts(
        self,
        parts: Sequence[Sequence[tuple[int, int]]],
        work: Callable[[int, int, int], None],
        sums: NDArray[np.float64] | None = None,
        *,
        alone: bool = False,
    ) -> None:
        """``work(start, stop, part)`` over the slices of all parts, as many parts at a time as there are threads; the
        ``sums`` of a part, shape (n_parts, ...), are cleared before it is read. ``alone``: by the calling thread."""
        if alone:
            for number in range(len(parts)):
                self._read(number, work)
            return
        ended = False

        def checkpoint() -> None:
            nonlocal ended
            try:
                self._checkpoint()
            except BaseException:
                ended = True  # so that no other thread reads its part to the end
                raise

        def read(number: int) -> None:
            if sums is not None:
                sums[number] = 0.0
            self._read_ahead(number + self.n_threads)
            for start, stop in parts[number]:
                if ended:
                    return
                work(start, stop, number)
                self._page_cache.behind(start, stop)
                checkpoint()

        self.side_by_side([partial(read, number) for number in range(len(parts))], checkpoint)


class Engine:
    """The place of the rows of one training, and their reader: here in the memory of this process, or in files that are
    mapped, and read part by part through the page cache. Of those, a pass reads the next parts ahead.

    ``space`` is where the training's own copies of the rows lie. ``resident_bytes`` of mapped rows may stay in the page
    cache from one pass to the next; None: as many as the system likes. A reader in circles finds none of its rows in a
    cache that is a little too small, since the oldest leave first. So the first rows stay, and the others leave once
    they are read.
    """

    def __init__(self, name: EngineName = "memory", space: Space = MEMORY, resident_bytes: int | None = None) -> None:
        self.name, self.space, self._resident_bytes = name, space, resident_bytes

    def over(self, rows: SparseRows, threads: int | None, checkpoint: Checkpoint) -> Passes:
        """The passes over these rows, which lie in the space; to be closed.

        ``checkpoint`` is called between slices, what it raises ends a pass.
        """
        return Passes(rows, threads, checkpoint, self._resident_bytes)


def _added(parts: NDArray[np.float64]) -> Vector:
    """The sums of parts, shape (n_parts, length), in their order."""
    found: Vector = parts[0].copy()
    for sums in parts[1:]:
        found += sums
    return found


def _slices_of(rows: SparseRows, start: int, stop: int, nonzeros: int) -> list[tuple[int, int]]:
    """Ranges of the rows of a part, each of about so many nonzeros."""
    return [(start + first, start + last) for first, last in rows.between(start, stop).slices(nonzeros)]
