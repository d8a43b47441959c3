"""Compiled steps of sequential minimal optimisation.

Maxima are taken over integer keys that are ordered as the numbers are: the compiler vectorises those, and maxima of
floating-point numbers not (measured: four to five times as fast). For the same reason strips of rows are indexed by
unsigned numbers.

Conventions: ``kernel_sums`` is K α, shape (n_points,); ``up`` and ``low`` are the slopes of all_slopes; ``ends`` has
shape (2,). Kernel rows are finite, which the caller has checked.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.kernels.cache import Slots
from core.kernels.gram import Vector
from core.numerics.compiled import compiled

_inlined = njit(nogil=True, cache=True, inline="always")

GOING_ON, CONVERGED, STUCK = 0, 1, 2
_STRIP = 256
_FLAT = 1e-12
_ALL_BUT_SIGN = np.int64(2**63 - 1)
_LEAST = np.int64(-(2**63))


class DualTerms(NamedTuple):
    """The concave, piecewise linear term of each point of the dual; all arrays of shape (n_points,).

    A point has ``lower ≤ α ≤ upper``. Its term has the slope ``below`` up to ``knot``, and the slope ``above ≤ below``
    from there on. A labeled document with the loss ``C max(0, 1 − y f)`` has below = y and one piece only (knot =
    upper). An unlabeled document and its copy with the other label share a kernel row, so they are one point: its α is
    the sum of their multipliers. The copy labeled +1 has the slope below, the copy labeled −1 the slope above.
    """

    lower: Vector
    """least α"""
    knot: Vector
    """α where the slope changes"""
    upper: Vector
    """largest α"""
    below: Vector
    """slope below the knot"""
    above: Vector
    """slope above the knot"""


@_inlined
def _key(value: float) -> np.int64:
    """An integer key that orders as the number does."""
    bits = np.float64(value).view(np.int64)
    return bits ^ ((bits >> np.int64(63)) & _ALL_BUT_SIGN)


@_inlined
def _value(key: np.int64) -> float:
    """The number with this key."""
    return np.int64(key ^ ((key >> np.int64(63)) & _ALL_BUT_SIGN)).view(np.float64)


@compiled
def all_slopes(alpha: Vector, terms: DualTerms, up: Vector, low: Vector) -> None:
    """Write the slope of each point's term above its α to ``up`` (−inf at the upper bound) and below it to ``low`` (inf
    at the lower bound).
    """
    for r in range(len(alpha)):
        _slopes(r, alpha, terms, up, low)


@compiled
def _slopes(r: int, alpha: Vector, terms: DualTerms, up: Vector, low: Vector) -> None:
    if alpha[r] < terms.knot[r]:
        up[r] = terms.below[r]
    else:
        up[r] = terms.above[r] if alpha[r] < terms.upper[r] else -np.inf
    if alpha[r] > terms.knot[r]:
        low[r] = terms.above[r]
    else:
        low[r] = terms.below[r] if alpha[r] > terms.lower[r] else np.inf


@compiled
def advance(
    alpha: Vector,
    kernel_sums: Vector,
    up: Vector,
    low: Vector,
    terms: DualTerms,
    slots: Slots,
    now: int,
    goal: float,
    steps: int,
) -> tuple[int, int]:
    """Make at most ``steps`` steps; returns how they ended and how many were made.

    A point without a kernel row in the cache must not move: its ``up`` is −inf and its ``low`` inf.
    """
    rows, slot_of, stamps, diagonal = slots.rows, slots.slot_of, slots.stamps, slots.diagonal
    ends = np.empty(2)
    first = _extremes(kernel_sums, up, low, ends)
    for step in range(steps):
        if ends[0] - ends[1] <= goal:
            return CONVERGED, step
        second = _partner(rows[slot_of[first]], diagonal, diagonal[first], kernel_sums, low, ends[0])
        if second < 0 or slot_of[first] < 0 or slot_of[second] < 0:
            return STUCK, step
        own, other = slot_of[first], slot_of[second]
        stamps[own] = stamps[other] = now
        top = terms.knot[first] if alpha[first] < terms.knot[first] else terms.upper[first]
        bottom = terms.knot[second] if alpha[second] > terms.knot[second] else terms.lower[second]
        curvature = max(diagonal[first] + diagonal[second] - 2.0 * rows[own, second], _FLAT)
        change = (ends[0] - low[second] + kernel_sums[second]) / curvature
        room = min(top - alpha[first], alpha[second] - bottom)
        if change < room:
            alpha[first] += change
            alpha[second] -= change
        else:
            change = room
            alpha[first] = top if top - alpha[first] <= room else alpha[first] + room
            alpha[second] = bottom if alpha[second] - bottom <= room else alpha[second] - room
        _slopes(first, alpha, terms, up, low)
        _slopes(second, alpha, terms, up, low)
        first = _shift(kernel_sums, rows[own], rows[other], change, up, low, ends)
    return GOING_ON, steps


@compiled
def _extremes(kernel_sums: Vector, up: Vector, low: Vector, ends: NDArray[np.float64]) -> int:
    """Write the largest ``up − kernel_sums`` and the least ``low − kernel_sums`` to ``ends``; returns the point of the
    first, or −1.
    """
    most, least, place = _LEAST, _ALL_BUT_SIGN, -1
    for r in range(len(kernel_sums)):
        key = _key(up[r] - kernel_sums[r])
        if key > most:
            most, place = key, r
        least = min(least, _key(low[r] - kernel_sums[r]))
    ends[0], ends[1] = up[place] - kernel_sums[place], _value(least)
    return place


@compiled
def _shift(
    kernel_sums: Vector,
    gained: NDArray[np.float32],
    lost: NDArray[np.float32],
    change: float,
    up: Vector,
    low: Vector,
    ends: NDArray[np.float64],
) -> int:
    """Update ``kernel_sums`` by a step; ``ends`` and the answer as in _extremes."""
    most, least, place, n = _LEAST, _ALL_BUT_SIGN, 0, len(kernel_sums)
    for start in range(0, n, _STRIP):
        strip_most, strip_least = _LEAST, _ALL_BUT_SIGN
        for r in range(np.uintp(start), np.uintp(min(start + _STRIP, n))):
            value = kernel_sums[r] + change * (np.float64(gained[r]) - np.float64(lost[r]))
            kernel_sums[r] = value
            strip_most = max(strip_most, _key(up[r] - value))
            strip_least = min(strip_least, _key(low[r] - value))
        least = min(least, strip_least)
        if strip_most > most:
            most, place = strip_most, start
    first, most = place, _LEAST
    for r in range(place, min(place + _STRIP, n)):  # positions in the loop above would keep it from being vectorised
        if _key(up[r] - kernel_sums[r]) > most:
            first, most = r, _key(up[r] - kernel_sums[r])
    ends[0], ends[1] = _value(most), _value(least)
    return first


@compiled
def _partner(
    row: NDArray[np.float32], diagonal: Vector, own: float, kernel_sums: Vector, low: Vector, most: float
) -> int:
    """The point with the largest second-order gain ``(difference of slopes)² / curvature`` beside the point of this
    row; −1 if none gains.
    """
    best, place, n = np.int64(0), -1, len(kernel_sums)
    for start in range(0, n, _STRIP):
        strip = np.int64(0)
        for r in range(np.uintp(start), np.uintp(min(start + _STRIP, n))):
            strip = max(strip, _gain(row[r], diagonal[r], own, kernel_sums[r], low[r], most))
        if strip > best:
            best, place = strip, start
    if place < 0:
        return -1
    second, best = place, np.int64(-1)
    for r in range(place, min(place + _STRIP, n)):
        gain = _gain(row[r], diagonal[r], own, kernel_sums[r], low[r], most)
        if gain > best:
            second, best = r, gain
    return second


@_inlined
def _gain(value: float, diagonal: float, own: float, kernel_sums: float, low: float, most: float) -> np.int64:
    """The key of the gain, 0 where there is none: the bits of nonnegative numbers order as the numbers do."""
    difference = most - low + kernel_sums
    difference = difference if difference > 0.0 else 0.0
    curvature = own + diagonal - 2.0 * value
    curvature = curvature if curvature > _FLAT else _FLAT
    return np.float64(difference * difference / curvature).view(np.int64)
