"""Transductive L2-SVM with multiple switching."""

import numpy as np

from core.algorithms.svm import fit_labeled
from core.engine.requests import Adjoint, Phase, Procedure, Report, Steps, Stopped, Vector
from core.losses.balance import label_gains, positive_fraction, threshold_labels
from core.losses.squared_hinge import labeled_costs, transductive_objective
from core.optimizers.newton import Iterate, StoppingRule, minimise, result_of, start_at
from core.options.linear import TsvmOptions
from core.problem import Problem, Status

_FIRST_WEIGHT = 1e-5
_GROWTH = 2.0
_ROUGH_GAP = 100.0
_ROUGH_REDUCTION = 0.3


def tsvm(problem: Problem, options: TsvmOptions, init: Vector | None = None, /) -> Steps:
    """Transductive SVM: finds w and labels y' of the unlabeled rows, a given fraction of them positive.

    Objective: ``λ/2 |w|² + 1/2 Σ_i weight_i max(0, 1 − y_i o_i)² + λ'/2 Σ_j weight_j max(0, 1 − y'_j o'_j)²`` over w
    and y' (Eqn. 7 of Sindhwani & Keerthi 2006); weights sum to 1 over the labeled and to 1 over the unlabeled rows.
    Constraint: ``round(fraction · u)`` of the y' are +1: switching works on pairs, so it keeps the count. Symbols: λ =
    ``lambda``, λ' = ``lambda_u``, S = ``max_switches``, o = Xw. Stages: λ' grows twofold from 1e-5 to exactly
    ``lambda_u`` (Loop 1 of Table 4). In each, pairs are switched and w is retrained until no pair would lower the
    objective (Loop 2). Retraining is rough (a gap of 100 tolerances, or the gradient down to 0.3 of what the switch
    left) until no pair is left in the last stage; then it is done to the tolerance, and pairs are looked for again.
    Both a switch and a retraining, rough or not, lower the objective, so Loop 2 ends. Returns: J of Eqn. 18, which is
    at most the objective above; NaN if stopped before the unlabeled rows were first scored. Source: Table 4 and section
    3.1.2; the supervised solution is the seed instead of w = 0. From ``init``, the solution of a problem nearly the
    same, the labels are those of its scores and λ' is ``lambda_u`` at once.
    """
    search = _Search(problem, options)
    try:
        status = yield from search.run(init)
    except Stopped:
        status = Status.CANCELLED
    return result_of(search.iterate, problem, search.objective(), status)


class _Search:
    """The state of one run: an iterate, the temporary labels and the λ' of the stage."""

    def __init__(self, problem: Problem, options: TsvmOptions) -> None:
        self.problem, self.options = problem, options
        self.iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
        self._base = labeled_costs(problem)
        self._weights = problem.weights[problem.n_labeled :]
        self._labels = np.zeros(0)
        self._weight = 0.0

    def objective(self) -> float:
        """J of Eqn. 18 at the iterate, with the λ' asked for."""
        return transductive_objective(
            self.problem, self.options.lambda_, self.options.lambda_u, self.iterate.coefficients, self.iterate.scores
        )

    def run(self, init: Vector | None) -> Procedure[Status]:
        if init is None or self.problem.n_unlabeled == 0:
            ending = yield from fit_labeled(
                self.iterate, self.problem, self.options, init, Report(Phase("tsvm").then("svm"), 0, 0.0, np.nan, 0.0)
            )
            if self.problem.n_unlabeled == 0:
                return ending.status
        else:
            yield from start_at(self.iterate, init)
        fraction = positive_fraction(self.problem, self.options)
        self._labels = threshold_labels(self.iterate.scores[self.problem.n_labeled :], fraction)
        stages = weight_stages(self.options.lambda_u) if init is None else [self.options.lambda_u]
        tight = StoppingRule(self.options.tolerance, max_iterations=self.options.max_iterations)
        rough = tight._replace(gap=self.options.tolerance * _ROUGH_GAP, reduction=_ROUGH_REDUCTION)
        for number, weight in enumerate(stages):
            report = Report(
                Phase("tsvm").then("stage", number), 0, 0.0, self.objective(), number / len(stages), stages=len(stages)
            )
            yield from self._weigh(weight)
            status = yield from self._switch_and_retrain(rough, report)
            if status is Status.NUMERICAL_ERROR:
                return status
        return (yield from self._switch_and_retrain(tight, report))

    def _weigh(self, weight: float) -> Procedure[None]:
        """Set λ'. The pull of the unlabeled rows scales with it: only the labeled rows, which are few, are read."""
        if self._weight:
            slopes = self.iterate.slopes.copy()
            slopes[self.problem.n_labeled :] = 0.0
            labeled = np.zeros_like(self.iterate.gradient)
            yield Adjoint(slopes, labeled)
            self.iterate.gradient = labeled + (self.iterate.gradient - labeled) * (weight / self._weight)
            self.iterate.slopes[self.problem.n_labeled :] *= weight / self._weight
        self._weight = weight

    def _switch_and_retrain(self, rule: StoppingRule, report: Report) -> Procedure[Status]:
        """Loop 2 of Table 4."""
        while True:
            # a labeled row pays on the side of its label, an unlabeled one on the side of its temporary label
            scaled = self._weight * self._weights
            costs = self._base.with_unlabeled(scaled * (self._labels > 0), scaled * (self._labels < 0))
            ending = yield from minimise(
                self.iterate, costs, self.options.lambda_, rule, report._replace(objective=self.objective())
            )
            if ending.status is Status.NUMERICAL_ERROR:
                return ending.status
            pairs = improving_pairs(
                self.iterate.scores[self.problem.n_labeled :], self._labels, self._weights, self.options.max_switches
            )
            if not pairs.size:
                return ending.status
            self._labels[pairs] *= -1.0


def weight_stages(final: float) -> list[float]:
    """λ' of each stage (Loop 1 of Table 4), growing towards exactly ``final``."""
    stages, weight = [], _FIRST_WEIGHT
    while weight < final:
        stages.append(weight)
        weight *= _GROWTH
    return [*stages, final]


def improving_pairs(
    scores: Vector, labels: Vector, weights: Vector, most: int | None
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Rows to switch: as many of +1 as of -1, at most ``most`` pairs, each pair lowering the objective at these scores.

    Section 3.1.2 sorts the active positive rows upwards and the active negative ones downwards by score and pairs them
    from the top while o_i < o_j. With weights the same is done by what a switch gains, ``weight (max(0, 1 − y'o)² −
    max(0, 1 + y'o)²)``, while a pair's sum is above 0. Only rows that some partner could make worth switching are
    sorted.
    """
    gains = np.empty_like(scores)
    label_gains(scores, gains)
    gains *= weights * labels
    active = labels * scores < 1
    plus, minus = np.flatnonzero(active & (labels > 0)), np.flatnonzero(active & (labels < 0))
    if not (plus.size and minus.size):
        return plus[:0]
    minus = minus[gains[minus] + gains[plus].max() > 0]
    plus = plus[gains[plus] + gains[minus].max(initial=-np.inf) > 0]
    count = min(plus.size, minus.size, most or plus.size)
    plus, minus = (side[np.argsort(-gains[side], kind="stable")[:count]] for side in (plus, minus))
    count = np.count_nonzero(gains[plus] + gains[minus] > 0)
    return np.concatenate([plus[:count], minus[:count]])
