"""Low density separation: ∇TSVM, whose smooth loss keeps the boundary away from unlabeled rows, and LDS, which is ∇TSVM
where distances are short along dense places (Chapelle & Zien 2005).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.algorithms.svm import svm
from core.engine.requests import (
    PathSpace,
    Procedure,
    Report,
    Scores,
    Steps,
    Subspace,
    Vector,
    Within,
    as_part,
    translated,
)
from core.losses.balance import positive_fraction
from core.losses.loss import SquaredError
from core.losses.squared_hinge import SquaredHinge, labeled_costs
from core.numerics.compiled import compiled, exp_of
from core.numerics.vectors import dot, lane_sum
from core.optimizers.centred import Centred
from core.optimizers.newton import Ending, Iterate, StoppingRule, minimise, result_of
from core.optimizers.smo import empty_result
from core.optimizers.subspace import in_kernel_space, within
from core.options.linear import SemiSupervisedOptions
from core.options.subspace import RHOS, GradientTsvmOptions, LdsOptions
from core.problem import Problem, Result, Status
from core.progress import Phase, Span, Stopped
from core.validation.folds import folds_of, without


class LowDensity(NamedTuple):
    """``½ Σ_i c_i max(0, 1 − y_i o_i)² + ½ Σ_j c_j exp(−3 o_j²)`` (Chapelle & Zien 2005).

    A core.losses.loss.Loss, except that it is not convex: the curvature of a row is given as 0 where it is below.
    """

    labeled: SquaredHinge
    """of the first rows"""
    costs: Vector
    """c_j of the rows behind them, shape (n_unlabeled,)"""

    @property
    def charged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """See Loss."""
        return np.concatenate([self.labeled.charged, self.costs > 0])

    def evaluate(self, scores: Vector, slopes: Vector, curvatures: Vector) -> float:
        """See Loss."""
        n = len(self.labeled.positive)
        value = self.labeled.evaluate(scores[:n], slopes[:n], curvatures[:n])
        terms = np.empty(len(self.costs))
        _evaluate(scores[n:], self.costs, terms, slopes[n:], curvatures[n:])
        return value + 0.5 * float(lane_sum(terms, len(terms)))

    def along(self, scores: Vector, direction: Vector, step: float) -> tuple[float, float]:
        """See Loss."""
        n = len(self.labeled.positive)
        first, second = self.labeled.along(scores[:n], direction[:n], step)
        terms, slopes, curvatures = (np.empty(len(self.costs)) for _ in range(3))
        moves = direction[n:]
        _evaluate(scores[n:] + step * moves, self.costs, terms, slopes, curvatures)
        return first + float(dot(slopes, moves)), second + float(dot(curvatures * moves, moves))

    def update(
        self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector
    ) -> int:
        """See Loss: all unlabeled rows near the boundary leave the straight line."""
        n = len(self.labeled.positive)
        count = self.labeled.update(scores[:n], curvatures[:n], direction[:n], step, slopes[:n], jumps[:n])
        expected = slopes[n:] + step * curvatures[n:] * direction[n:]
        terms, ignored = np.empty(len(self.costs)), np.empty(len(self.costs))
        _evaluate(scores[n:], self.costs, terms, slopes[n:], ignored)
        jumps[n:] = slopes[n:] - expected
        return count + int(np.count_nonzero(jumps[n:]))


@compiled
def _evaluate(scores: Vector, costs: Vector, terms: Vector, slopes: Vector, curvatures: Vector) -> None:
    for j in range(len(scores)):
        terms[j] = costs[j] * exp_of(-3.0 * scores[j] * scores[j])
    for j in range(len(scores)):
        slopes[j] = -3.0 * scores[j] * terms[j]
    for j in range(len(scores)):
        curvatures[j] = max(0.0, 18.0 * scores[j] * scores[j] - 3.0) * terms[j]


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
        level = 2.0 * positive_fraction(problem, options) - 1.0
        self._centred = Centred(problem, level)
        self._iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features, level)

    def run(self) -> Procedure[Ending]:
        """The steps of ``gradient_tsvm``."""
        options, labeled = self._options, labeled_costs(self._problem)
        hinge = SquaredHinge(*(side[: self._problem.n_labeled] for side in labeled))
        yield from self._centred.locate()
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


_FOLDS = 5
"""folds by which ρ is chosen, but no more than either class has labels"""
_DEFAULT = 4.0
"""ρ where a class has one label"""
_CHOICE = 0.7
"""share of the work that the choice of ρ takes"""
_RIDGE, _GAP = 1e-6, 1e-3
"""λ of the model that predicts scores, and how near it comes to its minimum"""


def lds(problem: Problem, options: LdsOptions, init: Vector | None = None, /) -> Steps:
    """∇TSVM over coordinates that keep documents near each other if a path through dense places joins them.

    Objective: that of ``gradient_tsvm`` over the coordinates of core.kernels.paths (LDS, Algorithm 2 of Chapelle & Zien
    2005; λ is theirs after division by the variance, since coordinates have length 1 in the mean). ``rho`` by
    cross-validation is the one by which ∇TSVM gets the fewest labels left out wrong, of equals the one of the least
    objective, as in the program of Chapelle & Zien.
    Coordinates are those of these documents alone. So new ones get what a least squares model of all scores, in the
    space of ``kernel``, predicts: ``1/n Σ (o_k − f(x_k))² + 1e-6 |f|²``. The result has that model, and the scores o of
    the unlabeled rows; stopped before that, the model as far as it is fitted, and its scores. The result is a
    stationary point, by what ``init`` would not help.
    """
    try:
        begin, rho = 0.0, options.rho
        if rho == "auto":
            begin, rho = _CHOICE, (yield from _chosen_rho(problem, options))
        subspace: Subspace = yield PathSpace(rho, options.left_out)
        own = replace(problem, rows=subspace.coordinates.rows)
        found = yield from within(as_part(smooth_tsvm(own, options, "lds"), Span(begin, 0.9)), subspace)
        if found.status in (Status.CANCELLED, Status.NUMERICAL_ERROR):
            return empty_result(options, problem, found.status)
        scores = np.zeros(problem.rows.n_rows)
        yield Within(subspace, Scores(found.coefficients, np.zeros_like(scores), scores))
    except Stopped:
        return empty_result(options, problem, Status.CANCELLED)

    def regressed(problem: Problem, options: LdsOptions) -> Steps:
        iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
        loss = SquaredError(np.full(len(scores), 1.0 / len(scores)), scores)
        report = Report(Phase("lds"), 0, 0.0, found.objective, 0.9, 0.1)
        try:
            ending = yield from minimise(iterate, loss, _RIDGE, StoppingRule(_GAP), report)
        except Stopped:
            return result_of(iterate, problem, np.nan, Status.CANCELLED)
        return result_of(iterate, problem, ending.objective, ending.status)

    model = yield from in_kernel_space(regressed, problem, options)
    if model.status is Status.CANCELLED:
        return model
    return replace(found, decision=model.decision, status=found.status.worse(model.status))


def _chosen_rho(problem: Problem, options: LdsOptions) -> Procedure[float]:
    positive = (problem.y > 0).astype(np.int64)
    n_folds = min(_FOLDS, *(int(count) for count in np.bincount(positive, minlength=2)))
    if n_folds < 2:
        return _DEFAULT
    folds, found = folds_of(positive, problem.seed, n_folds), []
    for rho, span in zip(RHOS, Span(0.0, _CHOICE).equal(len(RHOS)), strict=True):
        subspace: Subspace = yield PathSpace(rho, options.left_out)
        own = replace(problem, rows=subspace.coordinates.rows)
        found.append((yield from within(_missed(own, options, folds, span), subspace)))
    return RHOS[found.index(min(found))]


def _missed(
    problem: Problem, options: LdsOptions, folds: NDArray[np.int64], span: Span
) -> Procedure[tuple[int, float]]:
    """The number of labels that ∇TSVM without their fold gets wrong, and the sum of its objectives."""
    count, objectives = 0, 0.0
    for fold, part in enumerate(span.equal(int(folds.max()) + 1)):
        found = yield from as_part(smooth_tsvm(without(problem, folds == fold), options, "lds"), part)
        if found.status is Status.CANCELLED:
            raise Stopped
        scores = np.zeros(problem.rows.n_rows)
        yield Scores(found.coefficients, np.zeros_like(scores), scores)
        count += int(np.count_nonzero((problem.y * scores[: problem.n_labeled] <= 0) & (folds == fold)))
        objectives += found.objective
    return count, objectives
