"""CutS3VM: the semi-supervised SVM with the hinge loss, by cutting planes."""

import math
from typing import NamedTuple

import numpy as np

from core.algorithms.cuts3vm.planes import Hyperplanes, Planes, Point, Solution
from core.engine.requests import Adjoint, Phase, Procedure, Report, Steps, Stopped
from core.losses.balance import positive_fraction
from core.losses.squared_hinge import labeled_costs
from core.numerics.elementary import Vector, log_of, standard_normal
from core.optimizers.newton import Iterate, StoppingRule, minimise
from core.options.linear import Cuts3vmOptions
from core.problem import Linear, Problem, Result, Status

_ROUGH_GAP = 1e-3
_EPSILON = 0.005
_ROUNDING = 1e-9
"""both in units of C + C_u"""
_ENOUGH = 0.01
"""α % of Algorithm 2"""
_PATIENCE = 2
_BETTER = 0.1
"""in units of ε"""


def cuts3vm(problem: Problem, options: Cuts3vmOptions, init: Vector | None = None, /) -> Steps:
    """Semi-supervised SVM by cutting planes.

    Objective: ``P(w) = ½ |w|² + C Σ_i weight_i max(0, 1 − y_i o_i) + C_u Σ_j weight_j max(0, 1 − |o'_j|)``, weights
    summing to 1 over the labeled and to 1 over the unlabeled rows: problem (3) of Zhao et al. 2008, who divide both
    sums by n: their C_l is ``C n / l``, their C_u ``C_u n / u``. Constraint: the weighted mean of o' is 2 r − 1, r =
    ``positive_fraction``: o = w · (x − centre) + 2 r − 1, with the centre of the unlabeled rows. Method: problem (4),
    the same in other words, has one slack ξ and a constraint for each c in {0, 1}ⁿ. Algorithm 1 minimises under a
    working set of them and adds the most violated one (Eqns. 9 and 10). The minimisation is Algorithm 2, a
    concave-convex procedure: |o'| is linearised at the last point (Eqns. 15 to 17) and a quadratic program solved by
    its dual (19), in turns, until that lowers its value by less than 1 %. Runs that get no further so are helped to an
    end (Cutting). A pass scores the rows and sums up the next plane; planes idle for 30 rounds
    are dropped. Stopping: the most violated constraint is violated by no more than ``epsilon``. Start: without planes
    the minimum is w = 0, whatever was linearised where, so the first plane is cut at a start instead: at the L2-SVM of
    the labeled rows with λ = 1/C, in random directions along which unlabeled scores have variance 1 (``restarts`` of
    them), or at ``init``. Returns: the point where the best start ended, and its P. When rounds run out, and when
    stopped, the point of least P seen, w = 0 among them.
    """
    search = _Search(problem, options)
    try:
        end = yield from search.run(init)
    except Stopped:
        end = End(search.cutting.best, Status.CANCELLED)
    vector = end.point.vector
    return Result(
        Linear(vector[:-1], float(vector[-1])), end.point.scores[problem.n_labeled :], end.point.objective, end.status
    )


class _Search:
    """One run: its hyperplanes, and the cutting that all starts share."""

    def __init__(self, problem: Problem, options: Cuts3vmOptions) -> None:
        self.problem, self.options = problem, options
        unlabeled_weight = options.C if options.C_u is None else options.C_u
        weights = problem.weights
        weights[: problem.n_labeled] *= options.C
        weights[problem.n_labeled :] *= unlabeled_weight
        self._hyperplanes = Hyperplanes(problem, weights, 2 * positive_fraction(problem, options) - 1)
        total = options.C + unlabeled_weight
        epsilon = _EPSILON * total if options.epsilon is None else max(options.epsilon, _ROUNDING * total)
        self.cutting = Cutting(self._hyperplanes, epsilon, options.max_iterations)

    def run(self, init: Vector | None) -> Procedure["End"]:
        """The best of the ends that the starts lead to."""
        yield from self._hyperplanes.locate()
        report = Report(Phase("cuts3vm"), 0, 0.0, None, 0.0, share=1.0)
        if init is not None:
            return (yield from self.cutting.run(init[:-1], report))
        if self.options.start == "supervised":
            return (yield from self.cutting.run((yield from self._supervised()), report))
        ends, share = [], 1.0 / self.options.restarts
        for number in range(self.options.restarts):
            direction = yield from self._random(number)
            report = Report(Phase("cuts3vm").then("start", number), 0, 0.0, None, number * share, share)
            ends.append((yield from self.cutting.run(direction, report)))
        return min(ends, key=lambda end: end.point.objective)

    def _supervised(self) -> Procedure[Vector]:
        iterate, costs = (
            Iterate.zero(self.problem.rows.n_rows, self.problem.rows.n_features),
            labeled_costs(self.problem),
        )
        report = Report(Phase("cuts3vm").then("svm"), 0, 0.0, self.cutting.best.objective, 0.0)
        yield from minimise(iterate, costs, 1.0 / self.options.C, StoppingRule(_ROUGH_GAP), report)
        return iterate.coefficients[:-1]

    def _random(self, number: int) -> Procedure[Vector]:
        direction = standard_normal(np.random.default_rng([self.problem.seed, number]), self.problem.rows.n_features)
        point = yield from self._hyperplanes.scored(direction)
        return direction / (self._hyperplanes.spread(point) or 1.0)


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

    def run(self, start: Vector, report: Report) -> Procedure[End]:
        """Algorithm 1: cut, minimise under all planes, until the most violated constraint is violated by no more than
        ε.

        After two rounds without a better point |o| stays linearised at the best one of this run, and a round is one
        quadratic program, until there is a better one. The planes then close in on a convex function that lies above P
        and touches it there, so the run comes to a better point or to its end. With |o| always linearised at the last
        point, as in the paper, signs may change for ever: so they did in 26 of 144 small problems. ``report`` has the
        phase, and the fraction and share of the whole work that this run is. Out of rounds, or of the range of numbers,
        it ends at the best point of all.
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
            phase, fraction = (
                report.phase.then("round", number).then("planes", len(planes)),
                report.fraction + report.share * progress.fraction,
            )
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
            progress.update(step.violation)
        return End(self.best, Status.ITERATION_LIMIT)

    def _minimise(self, planes: Planes, held: bool, report: Report) -> Procedure[_Step]:
        """Algorithm 2: minimise problem (13) by solving (17) at the last solution until that lowers its value by less
        than 1 %; once if ``held``.

        Where no plane would change by linearising it anew, neither would the value. Whether there is another turn is
        known before the pass over the rows, so only the last one sums up the next plane.
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
    """How far the violation has come from the largest to the one that ends a run, as convergence goes: by orders of
    magnitude.
    """

    def __init__(self, goal: float) -> None:
        self._goal, self._largest, self.fraction = goal, goal, 0.0

    def update(self, violation: float) -> None:
        """One more violation, above the goal."""
        self._largest = max(self._largest, violation)
        self.fraction = max(self.fraction, 1.0 - log_of(violation / self._goal) / log_of(self._largest / self._goal))
