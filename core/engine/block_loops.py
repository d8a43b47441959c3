"""The product for several right-hand sides at once, and the change of layout around it.

A block holds WIDTH vectors side by side: element j of all of them is one cache line, so that a nonzero costs one line
instead of as many as there are vectors, and the WIDTH products are one vector instruction. Blocks of fewer vectors are
padded with columns of no weight.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.numerics.compiled import compiled
from core.numerics.lanes import LINE, fetch, load, plus, put, spread, store, take, times
from core.numerics.width import WIDTH

Block = NDArray[np.float64]
"""shape (length, WIDTH), each row one cache line"""

_TILE = 64
"""rows of a block that are turned into columns while they are in the first-level cache"""
_AHEAD = 256
"""nonzeros of the next row, at most, whose lines are fetched beforehand: more would push out those of this row"""

Columns = tuple[NDArray[np.float64], ...]
"""WIDTH vectors of one length, or empty"""


def aligned(*shape: int) -> Block:
    """Zeros of shape (..., WIDTH), the rows whole cache lines: measured, a third less time than rows that straddle
    two."""
    count = math.prod(shape) * WIDTH
    raw = np.zeros(count + WIDTH)
    first = (-raw.ctypes.data // raw.itemsize) % (LINE // raw.itemsize)
    return raw[first : first + count].reshape(*shape, WIDTH)


def padded(vectors: Sequence[NDArray[np.float64]]) -> Columns:
    """At most WIDTH vectors, and empty ones for the columns that are left."""
    return (*vectors, *[np.zeros(0)] * (WIDTH - len(vectors)))


@compiled
def pack(vectors: Columns, start: int, stop: int, block: Block) -> None:
    """Write elements ``start`` to ``stop`` of vectors to the columns of a block, zeros for an empty vector."""
    for j in range(start, stop):
        for c in range(WIDTH):
            block[j, c] = vectors[c][j] if len(vectors[c]) else 0.0


@compiled
def unpack_sums(parts: NDArray[np.float64], start: int, stop: int, vectors: NDArray[np.float64]) -> None:
    """Take elements of the columns of the sum of some blocks, added up in their order: ``parts`` of shape (n_parts,
    length, WIDTH) are written to ``vectors`` of shape (at most WIDTH, length), and are zeros afterwards, for the next
    pass: cleared while they are in the first-level cache."""
    tile, zero = np.empty(_TILE * WIDTH), spread(0.0)
    for first in range(start, stop, _TILE):
        count = min(_TILE, stop - first)
        for j in range(count):
            put(tile, j * WIDTH, zero)
        for part in range(len(parts)):
            block = parts[part]
            for j in range(count):
                fetch(
                    block, np.uintp(first + j + _TILE)
                )  # beyond the end nothing is read: a fetch of any address is allowed
                put(tile, j * WIDTH, plus(take(tile, j * WIDTH), load(block, first + j)))
                store(block, first + j, zero)
        for c in range(len(vectors)):
            for j in range(count):
                vectors[c, first + j] = tile[j * WIDTH + c]


@compiled
def unpack_scores(block: Block, weights: Block, start: int, stop: int, scores: Columns) -> None:
    """The columns of a block of scores, on the rows with a weight."""
    for i in range(start, stop):
        for c in range(WIDTH):
            if weights[i, c] != 0.0:
                scores[c][i] = block[i, c]


@compiled
def product_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    vectors: Block,
    weights: Block,
    scores: Block,
    out: Block,
) -> None:
    """core.engine.csr_loops.product_rows for WIDTH right-hand sides, to the same bits, over the rows that have a weight
    in any of them.

    Blocks are larger than the nearer caches, and no processor foresees which of their lines an index names. So they are
    fetched beforehand: those of a row's sums while its scores are added up, and those of the next row's vectors
    meanwhile. Measured: half the time.
    """
    bias, end = np.uintp(len(vectors) - 1), np.uintp(indptr[stop])
    for i in range(start, stop):
        if not _any(weights, i):
            continue
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        score = _row_scores(indices, values, first, last, vectors, out)
        store(scores, i, score)
        pull = times(score, load(weights, i))
        _add_row(indices, values, first, last, end, vectors, pull, out)
        store(out, bias, plus(load(out, bias), pull))


@compiled
def score_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    vectors: Block,
    weights: Block,
    scores: Block,
    _: Block,
) -> None:
    """core.engine.csr_loops.score_rows for WIDTH vectors, to the same bits, over the rows that have a weight in any of
    them.
    """
    end = np.uintp(indptr[stop])
    for i in range(start, stop):
        if not _any(weights, i):
            continue
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        for k in range(last, min(last + np.uintp(_AHEAD), end)):
            fetch(vectors, np.uintp(indices[k]))
        store(scores, i, _row_scores(indices, values, first, last, vectors, vectors))


@compiled
def adjoint_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    vectors: Block,
    weights: Block,
    _: Block,
    out: Block,
) -> None:
    """core.engine.csr_loops.adjoint_rows for WIDTH vectors of weights, to the same bits."""
    bias, end = np.uintp(len(out) - 1), np.uintp(indptr[stop])
    for i in range(start, stop):
        if not _any(weights, i):
            continue
        pull = load(weights, i)
        _add_row(indices, values, np.uintp(indptr[i]), np.uintp(indptr[i + 1]), end, out, pull, out)
        store(out, bias, plus(load(out, bias), pull))


@njit(nogil=True, error_model="numpy", inline="always")
def _row_scores(
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    first: np.uintp,
    last: np.uintp,
    vectors: Block,
    near: Block,
) -> Any:
    """The products of a row and some vectors, bias included, in the lanes of core.engine.csr_loops; the row's lines of
    the block ``near`` are fetched."""
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    lanes = (load(vectors, np.uintp(len(vectors) - 1)), spread(0.0), spread(0.0), spread(0.0))
    position = first
    while position + three < last:
        fetch(near, np.uintp(indices[position]))
        fetch(near, np.uintp(indices[position + one]))
        fetch(near, np.uintp(indices[position + two]))
        fetch(near, np.uintp(indices[position + three]))
        lanes = (
            _plus_product(lanes[0], vectors, indices[position], values[position]),
            _plus_product(lanes[1], vectors, indices[position + one], values[position + one]),
            _plus_product(lanes[2], vectors, indices[position + two], values[position + two]),
            _plus_product(lanes[3], vectors, indices[position + three], values[position + three]),
        )
        position += four
    rest = lanes[0]
    while position < last:
        rest = _plus_product(rest, vectors, indices[position], values[position])
        position += one
    return plus(plus(rest, lanes[1]), plus(lanes[2], lanes[3]))


@njit(nogil=True, error_model="numpy", inline="always")
def _add_row(
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    first: np.uintp,
    last: np.uintp,
    end: np.uintp,
    near: Block,
    pull: Any,
    out: Block,
) -> None:
    """``out += pull · row`` without the bias; the next row's lines of the block ``near`` are fetched."""
    ahead = min(last - first, np.uintp(_AHEAD))
    for k in range(first, last):
        if k + ahead < end:
            fetch(near, np.uintp(indices[k + ahead]))
        column = np.uintp(indices[k])
        store(out, column, plus(load(out, column), times(pull, spread(np.float64(values[k])))))


@njit(nogil=True, error_model="numpy", inline="always")
def _plus_product(lane: Any, vectors: Block, column: np.uint32, value: np.float32) -> Any:
    """``lane + value · vectors[column]``, lane by lane."""
    return plus(lane, times(load(vectors, np.uintp(column)), spread(np.float64(value))))


@compiled
def _any(weights: Block, row: int) -> bool:
    """Whether a row has a weight in any column."""
    found = False
    for c in range(WIDTH):
        found |= weights[row, c] != 0.0
    return found
