"""The transductive SVM with a smooth loss of unlabeled rows (∇TSVM)."""

from dataclasses import replace

import numpy as np

from core.algorithms.svm import labeled_costs, result_of, svm
from core.engine.runner import Phase, Procedure, Report, Steps, Stopped, Vector, translated
from core.losses.balance import positive_fraction
from core.losses.low_density import LowDensity
from core.losses.squared_hinge import SquaredHinge
from core.optimizers.newton import Centred, Ending, Iterate, StoppingRule, minimise
from core.optimizers.subspace import in_kernel_space
from core.options.linear import SemiSupervisedOptions
from core.options.subspace import GradientTsvmOptions
from core.problem import Problem, Result, Status

_STAGES = 10
_GROWTH = 1.584893192461114
"""100^(1/10): λ' of the first stage is 0.01 of the last, as b and l of the program of Chapelle & Zien have it"""
_ROUGH_REDUCTION = 0.1


def gradient_tsvm(problem: Problem, options: GradientTsvmOptions, init: Vector | None = None, /) -> Steps:
    """Transductive SVM by the primal alone, with a differentiable loss of the unlabeled rows.

    Objective: ``λ/2 |w|² + 1/2 Σ_i weight_i max(0, 1 − y_i o_i)² + λ'/2 Σ_j weight_j exp(−3 o'_j²)`` (Eqn. 3 of
    Chapelle & Zien 2005, divided by 2 C l: λ = 1 / (2 C l), λ' = C* u / (C l)). Constraint: the weighted mean of o' is
    2 r − 1, r = ``positive_fraction``: o = w · (x − x̄) + 2 r − 1, with the mean x̄ of the unlabeled rows (section 4).
    Stages: λ' grows tenfold twice, in 10 steps, to exactly ``lambda_u``; each is solved to a tenth of its first
    gradient, the last to the tolerance. Newton's method takes the place of gradient descent: where the loss of a row is
    not convex its curvature counts as 0. With a kernel the same over coordinates (their kernel PCA). The result is a
    stationary point, by what ``init`` would not help. Without unlabeled rows it is the SVM.
    """
    return (yield from in_kernel_space(smooth_tsvm, problem, options))


def smooth_tsvm(problem: Problem, options: SemiSupervisedOptions, name: str = "gradient_tsvm") -> Steps:
    """The linear method, as a part of the algorithm of that name."""
    if problem.n_unlabeled == 0:
        return (yield from svm(problem, options))
    search = _Search(problem, options, Phase(name))
    try:
        ending = yield from search.run()
    except Stopped:
        return search.result(np.nan, Status.CANCELLED)
    return search.result(ending.objective, ending.status)


def weight_stages(final: float) -> list[float]:
    """λ' of each stage, growing to exactly ``final``."""
    stages = [final]
    for _ in range(_STAGES):
        stages.insert(0, stages[0] / _GROWTH)
    return stages


class _Search:
    """The state of one run."""

    def __init__(self, problem: Problem, options: SemiSupervisedOptions, phase: Phase) -> None:
        self._problem, self._options, self._phase = problem, options, phase
        self._centred = Centred(problem, 2.0 * positive_fraction(problem, options) - 1.0)
        self._iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)

    def run(self) -> Procedure[Ending]:
        """The steps of ``gradient_tsvm``."""
        options, labeled = self._options, labeled_costs(self._problem)
        hinge = SquaredHinge(*(side[: self._problem.n_labeled] for side in labeled))
        self._iterate = yield from self._centred.locate()
        rule = StoppingRule(options.tolerance, max_iterations=options.max_iterations)
        for stage, weight in enumerate(weight_stages(options.lambda_u)):
            loss = LowDensity(hinge, weight * self._problem.weights[self._problem.n_labeled :])
            part = 1.0 / (_STAGES + 1)
            report = Report(self._phase.then("stage", stage), 0, 0.0, None, stage * part, part, _STAGES + 1)
            own = rule if stage == _STAGES else rule._replace(reduction=_ROUGH_REDUCTION)
            steps = minimise(self._iterate, loss, options.lambda_, own, report)
            ending = yield from translated(steps, self._centred.translate)
        return ending

    def result(self, objective: float, status: Status) -> Result:
        """The result at the iterate."""
        found = result_of(self._iterate, self._problem, objective, status)
        return replace(found, decision=self._centred.decision(self._iterate))
