"""Deterministic (mean-field) annealing of the transductive L2-SVM, also in the space of a kernel."""

import math

import numpy as np

from core.algorithms.svm import fit_labeled
from core.engine.requests import Phase, Procedure, Report, Steps, Stopped
from core.losses.balance import balanced_probabilities, divergence, entropy, label_gains, positive_fraction
from core.losses.squared_hinge import labeled_costs, transductive_objective
from core.numerics.elementary import Vector
from core.optimizers.newton import Ending, Iterate, StoppingRule, minimise, result_of, start_at
from core.optimizers.subspace import in_kernel_space
from core.options.linear import AnnealingOptions
from core.options.subspace import KernelAnnealingOptions
from core.problem import Problem, Status

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
    return (yield from AnnealingPath(problem, options).steps(init))


class AnnealingPath:
    """The state of one run: an iterate, the beliefs, and the best iterate so far."""

    def __init__(self, problem: Problem, options: AnnealingOptions) -> None:
        self.problem, self.options = problem, options
        self.iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
        self.best, self.least = self.iterate, math.inf
        self.weights = problem.weights[problem.n_labeled :]
        self.fraction = positive_fraction(problem, options)
        self.beliefs = np.full(problem.n_unlabeled, self.fraction)
        self.entropy = math.inf
        self._base = labeled_costs(problem)
        self._rule = StoppingRule(options.tolerance * _ROUGH_GAP, _ROUGH_REDUCTION, options.max_iterations)
        self._multiplier: float | None = None

    @property
    def unlabeled_scores(self) -> Vector:
        """Scores of the unlabeled rows at the iterate, shape (n_unlabeled,)."""
        return self.iterate.scores[self.problem.n_labeled :]

    def steps(self, init: Vector | None = None) -> Steps:
        """The whole run, as an algorithm's steps."""
        try:
            status = yield from self._run(init)
        except Stopped:
            status = Status.CANCELLED
            if self.best is self.iterate:
                self.least = self._objective()
        return result_of(self.best, self.problem, self.least, status)

    def _run(self, init: Vector | None) -> Procedure[Status]:
        if self.problem.n_unlabeled == 0:
            ending = yield from fit_labeled(
                self.iterate,
                self.problem,
                self.options,
                init,
                Report(Phase("da").then("svm"), 0, 0.0, None, 0.0, share=1.0),
            )
            return (yield from self.compare(ending.status))
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
            if status is Status.NUMERICAL_ERROR or self.entropy < _ENOUGH:
                break
            temperature = max(_COLDEST, temperature / self.options.cooling)
        return status

    def _alternate(self, temperature: float, report: Report) -> Procedure[Status]:
        """Loop 2 of Table 5 at a temperature in units of λ'.

        Returns how it ended: with its last turn, or out of turns.
        """
        status = Status.CONVERGED
        for turn in range(self.options.max_alternations):
            change = yield from self.believe(temperature)
            if turn > 0 and change < _ENOUGH:
                return status
            information = -0.5 * temperature * self.options.lambda_u * self.entropy
            ending = yield from self._retrain(report._replace(stage_objective=information, objective=self.least))
            status = yield from self.compare(ending.status)
            if status is Status.NUMERICAL_ERROR:
                return status
        return Status.ITERATION_LIMIT

    def believe(self, temperature: float) -> Procedure[float]:
        """OPTIMIZE-P (Table 6); returns the mean divergence of the beliefs from their last values."""
        yield from ()
        gains, last = np.empty(self.problem.n_unlabeled), self.beliefs
        label_gains(self.unlabeled_scores, gains)
        self.beliefs, self._multiplier = balanced_probabilities(
            gains, self.weights, self.fraction, temperature, self._multiplier
        )
        self.entropy = entropy(self.beliefs, self.weights)
        return divergence(self.beliefs, last, self.weights)

    def _retrain(self, report: Report) -> Procedure[Ending]:
        """OPTIMIZE-W (Table 7): an unlabeled row pays on both sides, as it is believed (Eqn. 11)."""
        scaled = self.options.lambda_u * self.weights
        costs = self._base.with_unlabeled(scaled * self.beliefs, scaled * (1 - self.beliefs))
        return (yield from minimise(self.iterate, costs, self.options.lambda_, self._rule, report))

    def compare(self, status: Status) -> Procedure[Status]:
        """Keep the iterate, which a solve ended at with this status, if its J is the least; returns the status."""
        yield from ()
        objective = self._objective()
        if objective < self.least:
            self.keep(objective)
        return status

    def keep(self, objective: float) -> None:
        """Keep the iterate, whose J this is."""
        self.best, self.least = self.iterate.copy(), objective

    def _objective(self) -> float:
        return transductive_objective(
            self.problem, self.options.lambda_, self.options.lambda_u, self.iterate.coefficients, self.iterate.scores
        )


def kernel_da(problem: Problem, options: KernelAnnealingOptions, init: Vector | None = None, /) -> Steps:
    """Mean-field annealing of functions f in the space of a kernel (Sindhwani & Keerthi 2006, *Non-linear Mean Field
    Annealing*; Sindhwani, Keerthi & Chapelle 2006).

    Objective: that of ``annealing`` with |f|² of the kernel's space in place of |w|². The minimisation over w is the
    finite Newton method over coordinates (core.kernels.paths), the balance and the stages are those of
    ``annealing``.
    """
    return (yield from in_kernel_space(annealing, problem, options))
