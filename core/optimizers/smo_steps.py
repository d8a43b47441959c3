"""The compiled steps of sequential minimal optimisation.

Maxima are taken over integers that are ordered as the numbers are: the compiler keeps those in vector registers, and floating-point ones not
(measured: four to five times as fast). For the same reason strips of rows are indexed by unsigned numbers. Rows are checked to be finite beforehand.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from core.kernels.cache import Slots
from core.kernels.gram import Vector

_fast = njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nnan", "nsz"}, boundscheck=False, error_model="numpy")
_inlined = njit(nogil=True, cache=True, inline="always")

GOING_ON, CONVERGED, STUCK = 0, 1, 2
_STRIP = 256
_FLAT = 1e-12
_ALL_BUT_SIGN = np.int64(2**63 - 1)
_LEAST = np.int64(-(2**63))


class Terms(NamedTuple):
    """The concave, piecewise linear term of each point of the dual, all of shape (n_points,).

    Point r may have ``lower ≤ α ≤ upper``; its term grows by ``below`` for each unit of α up to ``knot``, and by ``above ≤ below`` from there on.
    A labeled document with loss ``C max(0, 1 − y f)`` has below = y and no second piece (knot = upper). An unlabeled document and its copy with the
    other label share a kernel row, so they are one point: their multipliers add up, and the first (+1) is used up before the second (−1) is
    touched.
    """

    lower: Vector
    knot: Vector
    upper: Vector
    below: Vector
    above: Vector


@_inlined
def _key(value: float) -> np.int64:
    """An integer that is larger where the number is."""
    bits = np.float64(value).view(np.int64)
    return bits ^ ((bits >> np.int64(63)) & _ALL_BUT_SIGN)


@_inlined
def _value(key: np.int64) -> float:
    """The number of a key."""
    return np.int64(key ^ ((key >> np.int64(63)) & _ALL_BUT_SIGN)).view(np.float64)


@_fast
def all_slopes(alpha: Vector, terms: Terms, up: Vector, low: Vector) -> None:
    """For each point, what its term changes by when it grows (−inf where it cannot) and when it shrinks (inf where it cannot)."""
    for r in range(len(alpha)):
        _slopes(r, alpha, terms, up, low)


@_fast
def _slopes(r: int, alpha: Vector, terms: Terms, up: Vector, low: Vector) -> None:
    up[r] = terms.below[r] if alpha[r] < terms.knot[r] else (terms.above[r] if alpha[r] < terms.upper[r] else -np.inf)
    low[r] = terms.above[r] if alpha[r] > terms.knot[r] else (terms.below[r] if alpha[r] > terms.lower[r] else np.inf)


@_fast
def advance(alpha: Vector, pull: Vector, up: Vector, low: Vector, terms: Terms, slots: Slots, now: int, goal: float, steps: int) -> tuple[int, int]:
    """At most ``steps`` steps: how they ended, and how many there were.

    Points that have no row may not be moved: their ``up`` is −inf and their ``low`` inf.
    """
    rows, slot_of, stamps, diagonal = slots.rows, slots.slot_of, slots.stamps, slots.diagonal
    ends = np.empty(2)
    first = _extremes(pull, up, low, ends)
    for step in range(steps):
        if ends[0] - ends[1] <= goal:
            return CONVERGED, step
        second = _partner(rows[slot_of[first]], diagonal, diagonal[first], pull, low, ends[0])
        if second < 0 or slot_of[first] < 0 or slot_of[second] < 0:
            return STUCK, step
        own, other = slot_of[first], slot_of[second]
        stamps[own] = stamps[other] = now
        top = terms.knot[first] if alpha[first] < terms.knot[first] else terms.upper[first]
        bottom = terms.knot[second] if alpha[second] > terms.knot[second] else terms.lower[second]
        curvature = max(diagonal[first] + diagonal[second] - 2.0 * rows[own, second], _FLAT)
        change = (ends[0] - low[second] + pull[second]) / curvature
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
        first = _shift(pull, rows[own], rows[other], change, up, low, ends)
    return GOING_ON, steps


@_fast
def _extremes(pull: Vector, up: Vector, low: Vector, ends: NDArray[np.float64]) -> int:
    """``ends`` become the largest slope upwards and the smallest downwards; the point of the first, or -1."""
    most, least, at = _LEAST, _ALL_BUT_SIGN, -1
    for r in range(len(pull)):
        key = _key(up[r] - pull[r])
        if key > most:
            most, at = key, r
        least = min(least, _key(low[r] - pull[r]))
    ends[0], ends[1] = up[at] - pull[at], _value(least)
    return at


@_fast
def _shift(
    pull: Vector,
    gained: NDArray[np.float32],
    lost: NDArray[np.float32],
    change: float,
    up: Vector,
    low: Vector,
    ends: NDArray[np.float64],
) -> int:
    """Move ``pull`` by a step; ``ends`` and the answer as in _extremes."""
    most, least, at, n = _LEAST, _ALL_BUT_SIGN, 0, len(pull)
    for start in range(0, n, _STRIP):
        strip_most, strip_least = _LEAST, _ALL_BUT_SIGN
        for r in range(np.uintp(start), np.uintp(min(start + _STRIP, n))):
            value = pull[r] + change * (np.float64(gained[r]) - np.float64(lost[r]))
            pull[r] = value
            strip_most = max(strip_most, _key(up[r] - value))
            strip_least = min(strip_least, _key(low[r] - value))
        least = min(least, strip_least)
        if strip_most > most:
            most, at = strip_most, start
    first, most = at, _LEAST
    for r in range(at, min(at + _STRIP, n)):  # a search for the maximum itself could fail, as sums may be rounded otherwise here
        if _key(up[r] - pull[r]) > most:
            first, most = r, _key(up[r] - pull[r])
    ends[0], ends[1] = _value(most), _value(least)
    return first


@_fast
def _partner(row: NDArray[np.float32], diagonal: Vector, own: float, pull: Vector, low: Vector, most: float) -> int:
    """The point that can shrink and gains most with the one of this row: by ``(difference of slopes)² / curvature``; -1 if none gains."""
    best, at, n = np.int64(0), -1, len(pull)
    for start in range(0, n, _STRIP):
        strip = np.int64(0)
        for r in range(np.uintp(start), np.uintp(min(start + _STRIP, n))):
            strip = max(strip, _gain(row[r], diagonal[r], own, pull[r], low[r], most))
        if strip > best:
            best, at = strip, start
    if at < 0:
        return -1
    second, best = at, np.int64(-1)
    for r in range(at, min(at + _STRIP, n)):
        gain = _gain(row[r], diagonal[r], own, pull[r], low[r], most)
        if gain > best:
            second, best = r, gain
    return second


@_inlined
def _gain(value: float, diagonal: float, own: float, pull: float, low: float, most: float) -> np.int64:
    """The key of the gain, which is 0 where there is none: bits of numbers that are not negative are ordered as they are."""
    difference = most - low + pull
    difference = difference if difference > 0.0 else 0.0
    curvature = own + diagonal - 2.0 * value
    curvature = curvature if curvature > _FLAT else _FLAT
    return np.float64(difference * difference / curvature).view(np.int64)
