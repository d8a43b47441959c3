"""CutS3VM: the semi-supervised SVM with the hinge loss, by cutting planes."""

from collections.abc import Generator
from typing import Any

import numpy as np

from core.algorithms.cuts3vm.cutting import Cutting, End
from core.algorithms.cuts3vm.hyperplane import Hyperplanes
from core.algorithms.svm import labeled_costs
from core.engine.runner import Report, Request, Steps, Stopped, Vector
from core.losses.balance import positive_fraction
from core.numerics.elementary import standard_normal
from core.optimizers.newton import Iterate, StoppingRule, adopt, minimise
from core.options.cutting_planes import Cuts3vmOptions
from core.problem.problem import Problem
from core.problem.result import Linear, Result, Status

_ROUGH_GAP = 1e-3
_EPSILON = 0.005
_ROUNDING = 1e-9
"""both in units of C + C_u"""


def cuts3vm(problem: Problem, options: Cuts3vmOptions, init: Vector | None = None, /) -> Steps:
    """Semi-supervised SVM by cutting planes.

    Objective: ``P(w) = ½ |w|² + C Σ_i weight_i max(0, 1 − y_i o_i) + C_u Σ_j weight_j max(0, 1 − |o'_j|)``, weights summing to 1 over the labeled
    and to 1 over the unlabeled rows: problem (3) of Zhao et al. 2008, who divide both sums by n: their C_l is ``C n / l``, their C_u ``C_u n / u``.
    Constraint: the weighted mean of o' is 2 r − 1, r = ``positive_fraction``: o = w · (x − centre) + 2 r − 1, with the centre of the unlabeled rows.
    Method: problem (4), the same in other words, has one slack ξ and a constraint for each c in {0, 1}ⁿ. Algorithm 1 minimises under a working set of
    them and adds the most violated one (Eqns. 9 and 10). The minimisation is Algorithm 2, a concave-convex procedure: |o'| is linearised at the last
    point (Eqns. 15 to 17) and a quadratic program solved by its dual (19), in turns, until that lowers its value by less than 1 %. Runs that get no
    further so are helped to an end (core.algorithms.cuts3vm.cutting). A pass scores the rows and sums up the next plane; planes idle for 30
    rounds are dropped.
    Stopping: the most violated constraint is violated by no more than ``epsilon``.
    Start: without planes the minimum is w = 0, whatever was linearised where, so the first plane is cut at a start instead: at the L2-SVM of the
    labeled rows with λ = 1/C, in random directions along which unlabeled scores have variance 1 (``restarts`` of them), or at ``init``.
    Returns: the point where the best start ended, and its P. When rounds run out, and when stopped, the point of least P seen, w = 0 among them.
    """
    search = _Search(problem, options)
    try:
        end = yield from search.run(init)
    except Stopped:
        end = End(search.cutting.best, Status.CANCELLED)
    vector = end.point.vector
    return Result(Linear(vector[:-1], float(vector[-1])), end.point.scores[problem.n_labeled :], end.point.objective, end.status)


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

    def run(self, init: Vector | None) -> Generator[Request, Any, End]:
        """The best of the ends that the starts lead to."""
        yield from self._hyperplanes.locate()
        report = Report("cuts3vm", 0, 0.0, None, 0.0, share=1.0)
        if init is not None:
            return (yield from self.cutting.run(init[:-1], report))
        if self.options.start == "supervised":
            return (yield from self.cutting.run((yield from self._supervised()), report))
        ends, share = [], 1.0 / self.options.restarts
        for number in range(self.options.restarts):
            direction = yield from self._random(number)
            report = Report(f"cuts3vm/start={number}", 0, 0.0, None, number * share, share)
            ends.append((yield from self.cutting.run(direction, report)))
        return min(ends, key=lambda end: end.point.objective)

    def _supervised(self) -> Generator[Request, Any, Vector]:
        iterate, costs = Iterate.zero(self.problem.rows.n_rows, self.problem.rows.n_features), labeled_costs(self.problem)
        yield from adopt(iterate, costs)
        report = Report("cuts3vm/svm", 0, 0.0, self.cutting.best.objective, 0.0)
        yield from minimise(iterate, costs, 1.0 / self.options.C, StoppingRule(_ROUGH_GAP), report)
        return iterate.coefficients[:-1]

    def _random(self, number: int) -> Generator[Request, Any, Vector]:
        direction = standard_normal(np.random.default_rng([self.problem.seed, number]), self.problem.rows.n_features)
        point = yield from self._hyperplanes.scored(direction)
        return direction / (self._hyperplanes.spread(point) or 1.0)
