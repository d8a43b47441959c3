"""Algorithms 1 and 2 of Zhao et al. 2008: from a start to a point where no constraint is violated by much."""

import math
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from core.algorithms.cuts3vm.hyperplane import Hyperplanes, Point
from core.algorithms.cuts3vm.planes import Planes, Solution
from core.engine.runner import Adjoint, Report, Request, Vector
from core.numerics.elementary import log_of
from core.problem.result import Status

_ENOUGH = 0.01
"""α % of Algorithm 2"""
_PATIENCE = 2
_BETTER = 0.1
"""in units of ε"""


class End(NamedTuple):
    """Where a start led."""

    point: Point
    status: Status


class _Step(NamedTuple):
    """A minimum under the working set, where it lies, and the sum of the rows that fall short there: the next plane."""

    solution: Solution
    point: Point
    subgradient: Vector

    @property
    def violation(self) -> float:
        """By how much the most violated constraint is (step 4 of Algorithm 1)."""
        return self.point.loss - self.solution.slack


class Cutting:
    """The runs over one problem; they share the best point, which is w = 0 before the first."""

    def __init__(self, hyperplanes: Hyperplanes, epsilon: float, max_rounds: int) -> None:
        self._hyperplanes, self._epsilon, self._max_rounds = hyperplanes, epsilon, max_rounds
        self.best = hyperplanes.nothing()

    def run(self, start: Vector, report: Report) -> Generator[Request, Any, End]:
        """Algorithm 1: cut, minimise under all planes, until the most violated constraint is violated by no more than ε.

        After two rounds without a better point |o| stays linearised at the best one of this run, and a round is one quadratic program, until there is
        a better one. The planes then close in on a convex function that lies above P and touches it there, so the run comes to a better point or to
        its end. With |o| always linearised at the last point, as in the paper, signs may change for ever: so they did in 26 of 144 small problems.
        ``report`` has the phase, and the fraction and share of the whole work that this run is. Out of rounds, or of the range of numbers, it ends at
        the best point of all.
        """
        planes = Planes(self._hyperplanes.weights, self._hyperplanes.centre, self._hyperplanes.level)
        point, subgradient = yield from self._hyperplanes.cut(start)
        anchor, tries, progress = point, 0, _Progress(self._epsilon)
        for number in range(self._max_rounds):
            yield from planes.linearise(point.sides)
            planes.add(point.short, subgradient)
            held = tries >= _PATIENCE
            if held:
                yield from planes.linearise(anchor.sides)
            phase, fraction = f"{report.phase}/round={number}/planes={len(planes)}", report.fraction + report.share * progress.way
            step = yield from self._minimise(planes, held, report._replace(phase=phase, fraction=fraction))
            point, subgradient = step.point, step.subgradient
            if not math.isfinite(point.objective):
                return End(self.best, Status.NUMERICAL_ERROR)
            if step.violation <= self._epsilon:
                return End(point, Status.CONVERGED)
            if point.objective < anchor.objective - _BETTER * self._epsilon:
                anchor, tries = point, 0
            else:
                tries += 1
            planes.tidy()
            progress.tell(step.violation)
        return End(self.best, Status.ITERATION_LIMIT)

    def _minimise(self, planes: Planes, held: bool, report: Report) -> Generator[Request, Any, _Step]:
        """Algorithm 2: minimise problem (13) by solving (17) at the last solution until that lowers its value by less than 1 %; once if ``held``.

        Where no plane would change by linearising it anew, neither would the value. Whether there is another turn is known before the pass over the
        rows, so only the last one sums up the next plane.
        """
        last, turn = math.inf, 0
        while True:
            solution = yield from planes.solve()
            settled = held or not solution.value < (1 - _ENOUGH) * last
            if settled:
                point, subgradient = yield from self._hyperplanes.cut(solution.coefficients)
            else:
                point = yield from self._hyperplanes.scored(solution.coefficients)
                if not planes.moved(point.sides):
                    subgradient, settled = np.zeros_like(point.vector), True
                    yield Adjoint(self._hyperplanes.weights * point.sides * point.short, subgradient)
            if point.objective < self.best.objective:
                self.best = point
            yield report._replace(iteration=turn, stage_objective=solution.value, objective=self.best.objective)
            if settled:
                return _Step(solution, point, subgradient)
            yield from planes.linearise(point.sides)
            last, turn = solution.value, turn + 1


class _Progress:
    """How far the violation has come from the largest to the one that ends a run, as convergence goes: by orders of magnitude."""

    def __init__(self, goal: float) -> None:
        self._goal, self._largest, self.way = goal, goal, 0.0

    def tell(self, violation: float) -> None:
        """One more violation, above the goal."""
        self._largest = max(self._largest, violation)
        self.way = max(self.way, 1.0 - log_of(violation / self._goal) / log_of(self._largest / self._goal))
