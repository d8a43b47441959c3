"""The transductive objective, in plain NumPy: it stands apart from the methods that minimise it."""

import numpy as np

from core.engine.runner import Vector
from core.numerics.vectors import dot
from core.problem.problem import Problem


def transductive_objective(
    problem: Problem, ridge: float, unlabeled_weight: float, coefficients: Vector, scores: Vector
) -> float:
    """J of Eqn. 18 of Sindhwani & Keerthi 2006, with weighted means.

    ``J(w) = λ/2 |w|² + 1/2 Σ_i weight_i max(0, 1 − y_i o_i)² + λ'/2 Σ_j weight_j max(0, 1 − |o'_j|)²``; ``ridge`` = λ,
    ``unlabeled_weight`` = λ', ``coefficients`` = w of shape (n_features + 1,), ``scores`` = (o, o') of shape (n_rows,).
    """
    margins = np.concatenate([problem.y * scores[: problem.n_labeled], np.abs(scores[problem.n_labeled :])])
    losses = problem.weights * np.maximum(0.0, 1.0 - margins) ** 2
    labeled, unlabeled = losses[: problem.n_labeled].sum(), losses[problem.n_labeled :].sum()
    return float(0.5 * (ridge * (dot(coefficients, coefficients)) + labeled + unlabeled_weight * unlabeled))
