"""The loops of a pass over sparse rows with one right-hand side, compiled.

Free functions over ranges of rows of CSR arrays: they allocate nothing, release the interpreter lock and write only to
the arrays handed in, so that threads run them side by side, each with its own accumulator. Column indices are unsigned:
a signed index costs a test for wrap-around at every element.

The product of a row and a vector runs in four lanes, so that one sum need not wait for another: nonzero k in lane k mod
4, the bias and what is left after the last four in the first. core.engine.block_loops has the same lanes, and so the
same bits for eight vectors at once.

In all of them the last element of a coefficient vector is the bias, the coefficient of a feature that is 1 in every
row.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.numerics.compiled import compiled
from core.numerics.elementary import Vector

Indptr = NDArray[np.int64]
Indices = NDArray[np.uint32]
Values = NDArray[np.float32]


@njit(nogil=True, error_model="numpy", inline="always")
def _row_score(indices: Indices, values: Values, first: np.uintp, last: np.uintp, vector: Vector) -> float:
    """The product of a row and a vector, bias included."""
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    first_lane: float = vector[np.uintp(len(vector) - 1)]
    second_lane, third_lane, fourth_lane = 0.0, 0.0, 0.0
    position = first
    while position + three < last:
        first_lane += values[position] * vector[np.uintp(indices[position])]
        second_lane += values[position + one] * vector[np.uintp(indices[position + one])]
        third_lane += values[position + two] * vector[np.uintp(indices[position + two])]
        fourth_lane += values[position + three] * vector[np.uintp(indices[position + three])]
        position += four
    while position < last:
        first_lane += values[position] * vector[np.uintp(indices[position])]
        position += one
    return (first_lane + second_lane) + (third_lane + fourth_lane)


@njit(nogil=True, error_model="numpy", inline="always")
def _add_row(indices: Indices, values: Values, first: np.uintp, last: np.uintp, weight: float, out: Vector) -> None:
    """``out += weight · row``, bias included."""
    for k in range(first, last):
        out[np.uintp(indices[k])] += values[k] * weight
    out[np.uintp(len(out) - 1)] += weight


@compiled
def product_rows(
    indptr: Indptr,
    indices: Indices,
    values: Values,
    start: int,
    stop: int,
    vector: Vector,
    weights: Vector,
    scores: Vector,
    out: Vector,
) -> None:
    """``scores = X p`` and ``out += Xᵀ(weights ∘ scores)`` over the rows that have a weight, each row read once."""
    for i in range(start, stop):
        weight = weights[i]
        if weight == 0.0:
            continue
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        score = _row_score(indices, values, first, last, vector)
        scores[i] = score
        _add_row(indices, values, first, last, weight * score, out)


@compiled
def score_rows(
    indptr: Indptr,
    indices: Indices,
    values: Values,
    start: int,
    stop: int,
    vector: Vector,
    skipped: Vector,
    scores: Vector,
) -> None:
    """``scores = X p`` over the rows where ``skipped`` is 0."""
    for i in range(start, stop):
        if skipped[i] == 0.0:
            scores[i] = _row_score(indices, values, np.uintp(indptr[i]), np.uintp(indptr[i + 1]), vector)


@compiled
def adjoint_rows(
    indptr: Indptr, indices: Indices, values: Values, start: int, stop: int, weights: Vector, out: Vector
) -> None:
    """``out += Xᵀ weights`` over the rows that have a weight."""
    for i in range(start, stop):
        if weights[i] != 0.0:
            _add_row(indices, values, np.uintp(indptr[i]), np.uintp(indptr[i + 1]), weights[i], out)


@njit(nogil=True, error_model="numpy", inline="always")
def side_of(label: float, score: float) -> float:
    """The label of a row, or without one (0) the sign of its score, +1 for 0."""
    if label != 0.0:
        return label
    return 1.0 if score >= 0.0 else -1.0


@compiled
def cut_rows(
    indptr: Indptr,
    indices: Indices,
    values: Values,
    start: int,
    stop: int,
    vector: Vector,
    labels: Vector,
    weights: Vector,
    scores: Vector,
    out: Vector,
) -> None:
    """``scores = X p`` and ``out += Xᵀ(weights ∘ sides)`` over the rows with ``side · score < 1``, each row read
    once."""
    for i in range(start, stop):
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        score = _row_score(indices, values, first, last, vector)
        scores[i] = score
        side = side_of(labels[i], score)
        if side * score < 1.0:
            _add_row(indices, values, first, last, weights[i] * side, out)
