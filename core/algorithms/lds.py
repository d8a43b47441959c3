"""Low density separation: ∇TSVM where distances are short along dense places."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from core.algorithms.gradient_tsvm import smooth_tsvm
from core.algorithms.svm import labeled_costs, result_of
from core.engine.kernel_requests import PathSpace, Subspace, Within
from core.engine.runner import Phase, Procedure, Report, Scores, Steps, Stopped, Vector, as_part
from core.losses.loss import SquaredError
from core.numerics.vectors import lane_sum
from core.optimizers.newton import Iterate, StoppingRule, minimise
from core.optimizers.smo import empty_result, hinge
from core.optimizers.subspace import in_kernel_space, within
from core.options.subspace import RHOS, LdsOptions
from core.problem import Linear, Problem, Status
from core.progress import Span

_FOLDS = 5
_DEFAULT = 4.0
"""ρ where labels are too few to choose it by"""
_RIDGE, _GAP = 1e-6, 1e-3
"""λ of the model that predicts scores, and how near it comes to its minimum"""


def lds(problem: Problem, options: LdsOptions, init: Vector | None = None, /) -> Steps:
    """∇TSVM over coordinates that keep documents near each other if a path through dense places joins them.

    Objective: that of ``gradient_tsvm`` over the coordinates of core.kernels.paths (LDS, Algorithm 2 of Chapelle & Zien
    2005; λ is theirs after division by the variance, since coordinates have length 1 in the mean). ``rho`` by
    cross-validation is the one of the least squared hinge loss of labels left out by the SVM over the coordinates.
    Coordinates are those of these documents alone. So new ones get what a least squares model of all scores, in the
    space of ``kernel``, predicts: ``1/n Σ (o_k − f(x_k))² + 1e-6 |f|²``. The result has that model, and the scores o of
    the unlabeled rows. The result is a stationary point, by what ``init`` would not help.
    """
    try:
        rho = (yield from _chosen_rho(problem, options)) if options.rho == "auto" else options.rho
        subspace: Subspace = yield PathSpace(rho, options.left_out)
    except Stopped:
        return empty_result(options, problem, Status.CANCELLED)
    own = replace(problem, rows=subspace.coordinates.rows)
    found = yield from within(as_part(smooth_tsvm(own, options, "lds"), Span(0.0, 0.9)), subspace)
    if found.status in (Status.CANCELLED, Status.NUMERICAL_ERROR):
        return replace(empty_result(options, problem, found.status), unlabeled_scores=found.unlabeled_scores)
    assert isinstance(found.decision, Linear)
    scores = np.zeros(problem.rows.n_rows)
    vector = np.append(found.decision.coefficients, found.decision.intercept)

    def regressed(problem: Problem, options: LdsOptions) -> Steps:
        iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
        loss = SquaredError(np.full(len(scores), 1.0 / len(scores)), scores)
        report = Report(Phase("lds"), 0, 0.0, found.objective, 0.9, 0.1)
        ending = yield from minimise(iterate, loss, _RIDGE, StoppingRule(_GAP), report)
        return result_of(iterate, problem, ending.objective, ending.status)

    try:
        yield Within(subspace, Scores(vector, np.zeros_like(scores), scores))
        model = yield from in_kernel_space(regressed, problem, options)
    except Stopped:
        return replace(empty_result(options, problem, Status.CANCELLED), unlabeled_scores=found.unlabeled_scores)
    return replace(found, decision=model.decision, status=found.status.worse(model.status))


def _chosen_rho(problem: Problem, options: LdsOptions) -> Procedure[float]:
    n_folds = min(_FOLDS, *(int(np.count_nonzero(problem.y == label)) for label in (-1.0, 1.0)))
    if n_folds < 2:
        return _DEFAULT
    folds = np.empty(problem.n_labeled, np.int64)
    for label in (-1.0, 1.0):
        own = np.flatnonzero(problem.y == label)
        folds[own] = np.arange(len(own)) % n_folds
    losses = []
    for rho in RHOS:
        subspace: Subspace = yield PathSpace(rho, options.left_out)
        own_rows = replace(problem, rows=subspace.coordinates.rows)
        losses.append((yield from within(_held_out_loss(own_rows, options, folds), subspace)))
    return RHOS[int(np.argmin(losses))]


def _held_out_loss(problem: Problem, options: LdsOptions, folds: NDArray[np.int64]) -> Procedure[float]:
    """The sum of squared hinge losses of labels, each by an SVM without its fold."""
    scores = np.empty(problem.n_labeled)
    for fold in range(int(folds.max()) + 1):
        left_out = np.concatenate([folds == fold, np.zeros(problem.n_unlabeled, np.bool_)])
        without = replace(problem, costs=np.where(left_out, 0.0, problem.costs))
        iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
        costs, rule = labeled_costs(without), StoppingRule(options.tolerance, max_iterations=options.max_iterations)
        report = Report(Phase("lds").then("svm"), 0, 0.0, None, 0.0)
        yield from minimise(iterate, costs, options.lambda_, rule, report)
        yield Scores(iterate.coefficients, np.zeros(problem.rows.n_rows), iterate.scores)
        scores[folds == fold] = iterate.scores[: problem.n_labeled][folds == fold]
    return float(lane_sum(hinge(problem.y * scores) ** 2, len(scores)))
