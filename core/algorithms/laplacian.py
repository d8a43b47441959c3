"""The Laplacian SVM and regularised least squares: smooth over the graph of nearest neighbours."""

from collections.abc import Callable
from functools import partial

import numpy as np

from core.engine.requests import Neighbourhood, Phase, Report, Steps, Stopped, Vector, translated
from core.kernels.graph import Laplacian
from core.losses.loss import Loss, Smoothed, SquaredError
from core.losses.squared_hinge import labeled_costs
from core.optimizers.newton import Iterate, StoppingRule, minimise, result_of
from core.optimizers.subspace import in_kernel_space
from core.options.subspace import LaplacianOptions
from core.problem import Problem, Status


def laplacian_svm(problem: Problem, options: LaplacianOptions, init: Vector | None = None, /) -> Steps:
    """L2-SVM with scores that change little between neighbours.

    Objective: ``λ/2 |w|² + 1/2 Σ_i weight_i max(0, 1 − y_i o_i)² + λ_G/(2n) oᵀ L^p o`` over the scores o of all n rows
    (Eqn. 6 of Belkin, Niyogi & Sindhwani 2006, with a normalised Laplacian and squared losses as in Melacci & Belkin
    2011). Symbols: λ = ``lambda``, λ_G = ``lambda_graph``, p = ``power``, L = core.kernels.graph.Laplacian of
    ``neighbours``; weights sum to 1 over the labeled rows. Linear, o = Xw by Newton's method in the primal, each
    product with the Hessian a pass and one product with L (section 5 of Sindhwani & Keerthi 2006); with a kernel the
    same over coordinates. There is no balance constraint. The problem is convex, so ``init`` would change nothing.
    """
    return (yield from in_kernel_space(partial(_fit, labeled_costs, "laplacian_svm"), problem, options))


def laplacian_rls(problem: Problem, options: LaplacianOptions, init: Vector | None = None, /) -> Steps:
    """Regularised least squares with scores that change little between neighbours.

    Objective: ``λ/2 |w|² + 1/2 Σ_i weight_i (y_i − o_i)² + λ_G/(2n) oᵀ L^p o``: as of ``laplacian_svm``, with squared
    errors (Eqn. 5 of Belkin, Niyogi & Sindhwani 2006).
    """
    return (yield from in_kernel_space(partial(_fit, labeled_errors, "laplacian_rls"), problem, options))


def labeled_errors(problem: Problem) -> SquaredError:
    """Each labeled row pays its weight for its distance from its label; unlabeled rows pay nothing."""
    unlabeled = np.zeros(problem.n_unlabeled)
    return SquaredError(
        np.concatenate([problem.weights[: problem.n_labeled], unlabeled]), np.concatenate([problem.y, unlabeled])
    )


def _fit(losses: Callable[[Problem], Loss], name: str, problem: Problem, options: LaplacianOptions) -> Steps:
    iterate = Iterate.zero(problem.rows.n_rows, problem.rows.n_features)
    try:
        laplacian: Laplacian = yield Neighbourhood(options.neighbours)
        loss = Smoothed(losses(problem), laplacian.image, options.power, options.lambda_graph / problem.rows.n_rows)
        rule = StoppingRule(options.tolerance, max_iterations=options.max_iterations)
        report = Report(Phase(name), 0, 0.0, None, 0.0, share=1.0)
        ending = yield from translated(minimise(iterate, loss, options.lambda_, rule, report), loss.translate)
    except Stopped:
        return result_of(iterate, problem, np.nan, Status.CANCELLED)
    return result_of(iterate, problem, ending.objective, ending.status)
