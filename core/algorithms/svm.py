"""The supervised L2-SVM."""

import numpy as np

from core.engine.requests import Phase, Procedure, Report, Scores, Steps, Stopped, Vector
from core.losses.squared_hinge import labeled_costs
from core.optimizers.newton import Ending, Iterate, StoppingRule, minimise, result_of, start_at
from core.options.linear import LinearOptions
from core.problem import Problem, Status


def fit_labeled(
    iterate: Iterate, problem: Problem, options: LinearOptions, init: Vector | None, report: Report
) -> Procedure[Ending]:
    """Move ``iterate`` to the supervised solution, from ``init`` if given; on return it knows the scores of all rows.

    Stopped before, it does not know those of the unlabeled ones: they are NaN.
    """
    labeled = (np.arange(problem.rows.n_rows) < problem.n_labeled).astype(np.float64)
    rule = StoppingRule(options.tolerance, max_iterations=options.max_iterations)
    try:
        if init is not None:
            yield from start_at(iterate, init, 1.0 - labeled)
        ending = yield from minimise(iterate, labeled_costs(problem), options.lambda_, rule, report)
        yield Scores(iterate.coefficients, labeled, iterate.scores)
    except Stopped:
        iterate.scores[problem.n_labeled :] = np.nan
        raise
    return ending


def svm(problem: Problem, options: LinearOptions, init: Vector | None = None, /) -> Steps:
    """Supervised L2-SVM on the labeled rows; the unlabeled ones are only scored (NaN if stopped before).

    Objective: ``λ/2 |w|² + 1/2 Σ_i weight_i max(0, 1 − y_i o_i)²``, weights summing to 1 (Eqn. 1 of Sindhwani & Keerthi
    2006 with a mean), the bias regularised as a feature of value 1. Source: Tables 1 to 3 there.
    """
    iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
    try:
        ending = yield from fit_labeled(
            iterate, problem, options, init, Report(Phase("svm"), 0, 0.0, None, 0.0, share=1.0)
        )
    except Stopped:
        return result_of(iterate, problem, np.nan, Status.CANCELLED)
    return result_of(iterate, problem, ending.objective, ending.status)
