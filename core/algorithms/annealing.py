"""Deterministic (mean-field) annealing of the transductive L2-SVM."""

import math
from collections.abc import Generator
from typing import Any

import numpy as np

from core.algorithms.svm import fit_labeled, labeled_costs, result_of
from core.engine.runner import Phase, Report, Request, Steps, Stopped, Vector
from core.losses.balance import balanced_probabilities, divergence, entropy, label_gains, positive_fraction
from core.losses.squared_hinge import SquaredHinge, transductive_objective
from core.optimizers.newton import Ending, Iterate, StoppingRule, adopt, minimise, start_at
from core.options.linear import AnnealingOptions
from core.problem.problem import Problem
from core.problem.result import Status

_STAGES = 30
_ENOUGH = 1e-6
"""ε of Eqns. 16 and 17: mean divergence that ends a stage, mean entropy that ends the annealing"""
_WARM_TEMPERATURE = 0.3
"""in units of λ': where beliefs around a good solution begin to be decided, so that it is refined rather than
forgotten"""
_COLDEST = 1e-9
"""lowest T in units of λ': there only rows that tie are undecided, and colder they could not be balanced for
rounding"""
_ROUGH_GAP = 10.0
_ROUGH_REDUCTION = 0.3


def annealing(problem: Problem, options: AnnealingOptions, init: Vector | None = None, /) -> Steps:
    """Mean-field annealing: beliefs p in the unlabeled rows' being positive, from undecided to decided as T falls.

    Objective at temperature T: ``λ/2 |w|² + 1/2 Σ_i weight_i max(0, 1 − y_i o_i)²
    + λ'/2 Σ_j weight_j (p_j max(0, 1 − o'_j)² + (1 − p_j) max(0, 1 + o'_j)²) − T/2 Σ_j weight_j H(p_j)``
    over w and p (Eqn. 8 of Sindhwani & Keerthi 2006).
    Constraint: ``Σ_j weight_j p_j = fraction`` (Eqn. 9).
    Symbols: λ = ``lambda``, λ' = ``lambda_u``; T starts at ``temperature`` λ' and is divided by ``cooling`` after each
    stage, or stays at ``fixed_temperature`` λ' (the ablation of Figures 12 and 13); weights sum to 1 over the labeled
    and to 1 over the unlabeled rows. Stages: p and w are minimised over in turn until the mean divergence of p from its
    last value is below 1e-6 (Eqn. 16); w to a gap of 10 tolerances or a gradient of 0.3 of its start, which still
    lowers the objective. The annealing ends when the mean entropy is below 1e-6 (Eqn. 17) or after 30 stages. A stage
    that runs out of alternations hands its iterate to the next; the status is that of the last stage. Returns: the
    iterate of least J (Eqn. 18) on the path, and that J; stopped before the first was known, where it was (J is NaN if
    the unlabeled rows were not scored). Source: Tables 5 and 6; Table 7 is core.optimizers.newton with two costs a row.
    From ``init``, the solution of a problem nearly the same, T starts at 0.3 λ' if not below.
    """
    path = _Path(problem, options)
    try:
        status = yield from path.run(init)
    except Stopped:
        status = Status.CANCELLED
        path.keep_if_first()
    return result_of(path.best, problem, path.least, status)


class _Path:
    """The state of one run: an iterate, the beliefs, and the best iterate so far."""

    def __init__(self, problem: Problem, options: AnnealingOptions) -> None:
        self.problem, self.options = problem, options
        self.iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
        self.best, self.least = self.iterate, math.inf
        self._base = labeled_costs(problem)
        self._weights = problem.weights[problem.n_labeled :]
        self._rule = StoppingRule(options.tolerance * _ROUGH_GAP, _ROUGH_REDUCTION, options.max_iterations)
        self._fraction = positive_fraction(problem, options)
        self._beliefs = np.full(problem.n_unlabeled, self._fraction)
        self._entropy = math.inf
        self._multiplier: float | None = None

    def run(self, init: Vector | None) -> Generator[Request, Any, Status]:
        if self.problem.n_unlabeled == 0:
            ending = yield from fit_labeled(
                self.iterate,
                self.problem,
                self.options,
                init,
                Report(Phase("da").then("svm"), 0, 0.0, None, 0.0, share=1.0),
            )
            self._keep_best()
            return ending.status
        fixed = self.options.fixed_temperature
        temperature = max(_COLDEST, fixed or self.options.temperature)
        if init is not None:
            yield from start_at(self.iterate, init)
            temperature = min(temperature, _WARM_TEMPERATURE)
        for stage in range(1 if fixed else _STAGES):
            report = Report(
                Phase("da").then("stage", stage), 0, 0.0, self.least, stage / _STAGES, stages=1 if fixed else _STAGES
            )
            status = yield from self._alternate(temperature, report)
            if status is Status.NUMERICAL_ERROR or self._entropy < _ENOUGH:
                break
            temperature = max(_COLDEST, temperature / self.options.cooling)
        return status

    def _alternate(self, temperature: float, report: Report) -> Generator[Request, Any, Status]:
        """Loop 2 of Table 5 at a temperature in units of λ'.

        Returns how it ended: with its last turn, or out of turns.
        """
        status = Status.CONVERGED
        for turn in range(self.options.max_alternations):
            last = self._beliefs
            self._believe(temperature)
            if turn > 0 and divergence(self._beliefs, last, self._weights) < _ENOUGH:
                return status
            information = -0.5 * temperature * self.options.lambda_u * self._entropy
            ending = yield from self._retrain(report._replace(stage_objective=information, objective=self.least))
            self._keep_best()
            status = ending.status
            if status is Status.NUMERICAL_ERROR:
                return status
        return Status.ITERATION_LIMIT

    def _believe(self, temperature: float) -> None:
        """OPTIMIZE-P (Table 6)."""
        gains = np.empty(self.problem.n_unlabeled)
        label_gains(self.iterate.scores[self.problem.n_labeled :], gains)
        self._beliefs, self._multiplier = balanced_probabilities(
            gains, self._weights, self._fraction, temperature, self._multiplier
        )
        self._entropy = entropy(self._beliefs, self._weights)

    def _retrain(self, report: Report) -> Generator[Request, Any, Ending]:
        """OPTIMIZE-W (Table 7): an unlabeled row pays on both sides, as it is believed (Eqn. 11)."""
        costs = SquaredHinge(self._base.positive.copy(), self._base.negative.copy())
        scaled = self.options.lambda_u * self._weights
        costs.positive[self.problem.n_labeled :] = scaled * self._beliefs
        costs.negative[self.problem.n_labeled :] = scaled * (1 - self._beliefs)
        yield from adopt(self.iterate, costs)
        return (yield from minimise(self.iterate, costs, self.options.lambda_, self._rule, report))

    def keep_if_first(self) -> None:
        """Keep the iterate as it is if there is no other to return."""
        if self.best is self.iterate:
            self.least = self._objective()

    def _keep_best(self) -> None:
        objective = self._objective()
        if objective < self.least:
            self.best, self.least = self.iterate.copy(), objective

    def _objective(self) -> float:
        return transductive_objective(
            self.problem, self.options.lambda_, self.options.lambda_u, self.iterate.coefficients, self.iterate.scores
        )
