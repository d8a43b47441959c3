"""The dual of the cutting plane method: a small concave quadratic over the simplex, solved exactly."""

import numpy as np

from core.numerics.small_dense import solve
from core.numerics.vectors import Vector, dots

_RIDGE = 1e-14
_ROUNDING = 1e-12


def maximise_on_simplex(gram: Vector, offsets: Vector, start: Vector) -> Vector:
    """The duals λ that maximise ``h·λ − ½ λᵀGλ`` under ``λ ≥ 0``, ``Σ λ ≤ 1`` (Eqn. 19 of Zhao et al. 2008).

    ``gram`` = G of shape (K, K), positive semidefinite; ``offsets`` = h and ``start`` of shape (K,), the latter within
    the constraints, as is the solution before one plane more. A primal active set method: what Σ λ leaves of 1 counts
    as one more dual, of a plane that is zero. The duals above 0 move towards the maximum of their face until one of
    them reaches 0 and leaves; at the maximum of a face the dual with the steepest ascent enters. Every step rises, no
    face comes twice, and at the end the conditions of optimality hold to rounding. A ridge at the size of rounding
    keeps the systems solvable when planes depend on each other.
    """
    size = max(float(gram.diagonal().max(initial=0.0)), float(np.abs(offsets).max(initial=0.0)), np.finfo(float).tiny)
    ridged, scaled = np.ascontiguousarray(gram / size), offsets / size
    ridged[np.diag_indices_from(ridged)] += _RIDGE
    duals = np.append(start, max(0.0, 1.0 - start.sum()))
    support = duals > 0
    entered = -1
    for _ in range(20 * (len(duals) + 5)):
        face = np.flatnonzero(support)
        target, level = _peak(ridged, scaled, support)
        if (target < 0).any():
            left = _step(duals, face, target)
            support[left] = False
            if left == entered:  # it rose by rounding alone
                break
            continue
        duals[face] = target
        slopes = np.zeros(len(scaled))
        dots(ridged, duals[:-1], slopes)
        ascents = np.append(scaled - slopes, 0.0) - level
        ascents[support] = -np.inf
        entered = int(ascents.argmax())
        if ascents[entered] <= _ROUNDING * np.abs(scaled).max(initial=0.0):
            break
        support[entered] = True
    return duals[:-1]


def _peak(gram: Vector, offsets: Vector, support: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[Vector, float]:
    """The maximum on the plane of a face, shape (size of the face,), and the ascent that all duals of the face have
    there.
    """
    planes = np.flatnonzero(support[:-1])
    inner, heights = gram[np.ix_(planes, planes)], offsets[planes]
    if support[-1]:
        duals = solve(inner, heights)
        return np.append(duals, 1.0 - duals.sum()), 0.0
    ones = np.ones((len(planes), 1))
    solution = solve(np.block([[inner, ones], [ones.T, np.zeros((1, 1))]]), np.append(heights, 1.0))
    return solution[:-1], float(solution[-1])


def _step(duals: Vector, face: np.ndarray[tuple[int], np.dtype[np.intp]], target: Vector) -> int:
    """Move towards the target until a dual reaches 0; returns which."""
    falling = np.flatnonzero(target < 0)
    now = duals[face]
    lengths = now[falling] / (now[falling] - target[falling])
    first = int(lengths.argmin())
    duals[face] = np.maximum(0.0, now + lengths[first] * (target - now))
    left = int(face[falling[first]])
    duals[left] = 0.0
    return left
