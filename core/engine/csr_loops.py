"""The only loops over sparse rows, compiled.

Free functions over ranges of rows of CSR arrays: they allocate nothing, release the interpreter lock and write only to the arrays handed
in, so that threads run them side by side, each with its own accumulator. Column indices are unsigned: a signed index costs a test for
wrap-around at every element. ``reassoc`` and ``contract`` let sums run in vector registers; neither assumes that values are finite.

In all of them the last element of a coefficient vector (row of a coefficient block) is the bias, the coefficient of a feature that is 1
in every row.
"""

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled


@compiled
def product_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    vector: NDArray[np.float64],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """``scores = X p`` and ``out += Xᵀ(weights ∘ scores)`` over the rows that have a weight, each row read once."""
    bias = np.uintp(len(vector) - 1)
    for i in range(start, stop):
        weight = weights[i]
        if weight == 0.0:
            continue
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        score = 0.0
        for k in range(first, last):
            score += values[k] * vector[np.uintp(indices[k])]
        score += vector[bias]
        scores[i] = score
        pull = weight * score
        for k in range(first, last):
            out[np.uintp(indices[k])] += values[k] * pull
        out[bias] += pull


@compiled
def score_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    vector: NDArray[np.float64],
    skipped: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> None:
    """``scores = X p`` over the rows where ``skipped`` is 0."""
    bias = vector[len(vector) - 1]
    for i in range(start, stop):
        if skipped[i] != 0.0:
            continue
        score = 0.0
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            score += values[k] * vector[np.uintp(indices[k])]
        scores[i] = score + bias


@compiled
def adjoint_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    weights: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """``out += Xᵀ weights`` over the rows that have a weight."""
    bias = np.uintp(len(out) - 1)
    for i in range(start, stop):
        weight = weights[i]
        if weight == 0.0:
            continue
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + 1])):
            out[np.uintp(indices[k])] += values[k] * weight
        out[bias] += weight


@compiled
def cut_rows(
    indptr: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float32],
    start: int,
    stop: int,
    vector: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """``scores = X p`` and ``out += Xᵀ(weights ∘ sides)`` over the rows with ``side · score < 1``, each row read once.

    The side of a row is its label, or without one (0) the sign of its score, +1 for 0.
    """
    bias = np.uintp(len(vector) - 1)
    for i in range(start, stop):
        first, last = np.uintp(indptr[i]), np.uintp(indptr[i + 1])
        score = 0.0
        for k in range(first, last):
            score += values[k] * vector[np.uintp(indices[k])]
        score += vector[bias]
        scores[i] = score
        side = labels[i]
        if side == 0.0:
            side = 1.0 if score >= 0.0 else -1.0
        if side * score >= 1.0:
            continue
        pull = weights[i] * side
        for k in range(first, last):
            out[np.uintp(indices[k])] += values[k] * pull
        out[bias] += pull
