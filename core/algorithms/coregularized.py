"""The co-regularised SVM: one model of each part of the documents, which agree on unlabeled ones."""

from dataclasses import replace
from typing import Any

import numpy as np

from core.engine.requests import Adjoint, Phase, Procedure, Report, Request, Scores, Steps, Stopped, Vector, translated
from core.losses.balance import positive_fraction
from core.losses.loss import Smoothed
from core.losses.squared_hinge import SquaredHinge, labeled_costs
from core.optimizers.centred import Centred
from core.optimizers.newton import Iterate, StoppingRule, minimise, result_of
from core.options.subspace import CoregularizedOptions
from core.problem import Problem, Status


def coregularized_svm(problem: Problem, options: CoregularizedOptions, init: Vector | None = None, /) -> Steps:
    """L2-SVM of two views of the rows with similar scores on unlabeled rows.

    Objective: ``λ/2 |w|² + 1/4 Σ_i weight_i Σ_v max(0, 1 − y_i o_iv)² + μ/2 Σ_j weight_j (o_j1 − o_j2)²`` over w, o_v
    being the scores by the columns of view v; μ = ``lambda_views``; weights sum to 1 over the labeled and to 1 over the
    unlabeled rows (Sindhwani, Niyogi & Belkin 2005, *A co-regularization approach to semi-supervised learning with
    multiple views*, with squared losses). Constraint, which the paper does not have: the weighted mean of the unlabeled
    scores of each view is 2 r − 1, r = ``positive_fraction``. Without it views agree best where all scores are alike.
    Views: the first part of the documents and all
    others; of documents of one part every second column. A row scores the mean of its views. Newton's method reads
    every row twice, once a view. The problem is convex, so ``init`` would change nothing.
    """
    level = 2.0 * positive_fraction(problem, options) - 1.0 if problem.n_unlabeled else 0.0
    views, centred = _Views(problem), Centred(problem, level)
    iterate = Iterate.zero(2 * problem.rows.n_rows, problem.rows.n_features, level)
    hinge = SquaredHinge(*(np.tile(0.5 * side, 2) for side in labeled_costs(problem)))
    loss = Smoothed(hinge, views.image, 1, options.lambda_views)
    rule = StoppingRule(options.tolerance, max_iterations=options.max_iterations)
    report = Report(Phase("coregularized_svm"), 0, 0.0, None, 0.0, share=1.0)
    steps = translated(minimise(iterate, loss, options.lambda_, rule, report), loss.translate)
    objective, status = np.nan, Status.CANCELLED
    try:
        if problem.n_unlabeled:
            yield from centred.locate()
        ending = yield from translated(translated(steps, views.translate), centred.translate)
        objective, status = ending.objective, ending.status
    except Stopped:
        pass
    iterate.coefficients[:-1] *= 0.5
    iterate.scores = np.split(iterate.scores, 2)[0] * 0.5 + np.split(iterate.scores, 2)[1] * 0.5
    return replace(result_of(iterate, problem, objective, status), decision=centred.decision(iterate))


class _Views:
    """The rows by the columns of one view, then of the other: ``image`` is a core.losses.loss.Coupling of both."""

    def __init__(self, problem: Problem) -> None:
        n = problem.rows.n_features
        second = np.arange(n) % 2 == 1 if problem.part_of is None else problem.part_of > 0
        self._masks = [np.append(columns, 1.0) for columns in (~second, second)]
        self._weights = np.where(np.arange(problem.rows.n_rows) < problem.n_labeled, 0.0, problem.weights)

    def image(self, scores: Vector, power: int) -> Vector:
        """The derivative of half the weighted squared differences between the views, shape (2 n_rows,)."""
        first, second = np.split(scores, 2)
        pulls = self._weights * (first - second)
        return np.concatenate([pulls, -pulls])

    def translate(self, request: Request) -> Procedure[Any]:
        """Answer a request over the rows of both views."""
        match request:
            case Scores(vector, skipped, scores):
                for mask, own, left_out in zip(self._masks, np.split(scores, 2), np.split(skipped, 2), strict=True):
                    yield Scores(vector * mask, left_out, own)
            case Adjoint(weights, sums):
                for mask, own in zip(self._masks, np.split(weights, 2), strict=True):
                    found = np.zeros_like(sums)
                    yield Adjoint(own, found)
                    sums += mask * found
            case _:
                return (yield request)
        return None
