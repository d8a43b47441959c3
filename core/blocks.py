"""The product for several right-hand sides at once, and the change of layout around it.

A block holds WIDTH vectors side by side: element j of all of them is one cache line, so that a nonzero costs one line instead of as many
as there are vectors, and the WIDTH products are one vector instruction. Blocks of fewer vectors are padded with columns of no weight.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from core.loops import compiled
from core.problem import SIDE_BY_SIDE

WIDTH = SIDE_BY_SIDE

Block = NDArray[np.float64]
"""shape (length, WIDTH), each row one cache line"""

Columns = tuple[NDArray[np.float64], ...]
"""WIDTH vectors of one length, or empty"""

LINE = 64
"""bytes of a cache line: a row of a block"""
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)


def aligned(length: int) -> Block:
    """A block of zeros whose rows are whole cache lines: measured, a third less time than one that straddles them."""
    raw = np.zeros(length * WIDTH + WIDTH)
    first = (-raw.ctypes.data // raw.itemsize) % (LINE // raw.itemsize)
    return raw[first : first + length * WIDTH].reshape(length, WIDTH)


def _add_scaled_intrinsic(_context: Any, target: Any, row: Any, source: Any, column: Any, scale: Any) -> Any:
    """``target[row] += scale * source[column]`` for blocks, as one vector instruction: a loop over WIDTH stays scalar when compiled."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def pointer(position: int) -> Any:
            array = context.make_array(signature.args[position])(context, builder, arguments[position])
            offset = builder.mul(arguments[position + 1], ir.Constant(arguments[position + 1].type, WIDTH))
            return builder.bitcast(builder.gep(array.data, [offset]), _VECTOR.as_pointer())

        lanes = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        scales = builder.shuffle_vector(builder.insert_element(nothing, arguments[4], ir.Constant(ir.IntType(32), 0)), nothing, lanes)
        goal = pointer(0)
        product = builder.fmul(builder.load(pointer(2), align=8), scales, flags=["contract"])
        builder.store(builder.fadd(builder.load(goal, align=8), product, flags=["contract"]), goal, align=8)
        return context.get_dummy_value()

    return types.void(target, row, source, column, scale), generate


_add_scaled: Any = intrinsic(_add_scaled_intrinsic)


def padded(vectors: Sequence[NDArray[np.float64]]) -> Columns:
    """At most WIDTH vectors, and empty ones for the columns that are left."""
    return (*vectors, *[np.zeros(0)] * (WIDTH - len(vectors)))


@compiled
def pack(vectors: Columns, start: int, stop: int, block: Block) -> None:
    """Write elements ``start`` to ``stop`` of vectors to the columns of a block; those of an empty vector are zero."""
    for j in range(start, stop):
        for c in range(WIDTH):
            block[j, c] = vectors[c][j] if len(vectors[c]) else 0.0


@compiled
def unpack_sum(parts: tuple[Block, ...], start: int, stop: int, vectors: NDArray[np.float64]) -> None:
    """Elements of the columns of the sum of some blocks, written to ``vectors`` of shape (at most WIDTH, length)."""
    for j in range(start, stop):
        for c in range(len(vectors)):
            total = 0.0
            for part in parts:
                total += part[j, c]
            vectors[c, j] = total


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
    """core.loops.product_rows for WIDTH right-hand sides, over the rows that have a weight in any of them."""
    bias, none, three = np.uintp(len(vectors) - 1), np.uintp(0), np.uintp(3)
    sums = np.zeros((4, WIDTH))  # four of them, so that a sum need not wait for the last one
    for i in range(start, stop):
        total = 0.0
        for c in range(WIDTH):
            total += weights[i, c]
        if total == 0.0:
            continue
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        sums[:] = 0.0
        for k in range(first, last):
            _add_scaled(sums, np.uintp(k) & three, vectors, np.uintp(indices[k]), np.float64(values[k]))
        for c in range(WIDTH):
            scores[i, c] = sums[0, c] + sums[1, c] + sums[2, c] + sums[3, c] + vectors[bias, c]
            sums[0, c] = weights[i, c] * scores[i, c]
            out[bias, c] += sums[0, c]
        for k in range(first, last):
            _add_scaled(out, np.uintp(indices[k]), sums, none, np.float64(values[k]))
