"""Passes over rows less their mean: the unlabeled scores of a linear solver then have the mean that they must have."""

from typing import Any

import numpy as np

from core.engine.requests import Adjoint, Procedure, Product, Request, Scores
from core.numerics.vectors import add_scaled, dot, lane_sum
from core.optimizers.newton import Iterate
from core.problem import Linear, Problem


class Centred:
    """Rows ``x − x̄`` with the weighted mean x̄ of the unlabeled ones, to be scored ``w · (x − x̄) + level``.

    The weighted mean of the unlabeled scores is ``level`` for every w.
    """

    def __init__(self, problem: Problem, level: float) -> None:
        self._problem, self._level = problem, level
        self._mean = np.zeros(problem.rows.n_features + 1)

    def locate(self) -> Procedure[None]:
        """Find the mean, in half a pass over the unlabeled rows; solvers begin at w = 0, where scores are ``level``."""
        weights = self._problem.weights
        weights[: self._problem.n_labeled] = 0.0
        yield Adjoint(weights, self._mean)
        self._mean[-1] = 1.0  # the bias is a feature that all rows have: it cannot move a score

    def translate(self, request: Request) -> Procedure[Any]:
        """Answer a request over the rows less their mean."""
        match request:
            case Product(vector, weights, scores):
                yield from self.translate(Scores(vector, (weights == 0).astype(np.float64), scores))
                image = np.zeros_like(vector)
                yield from self.translate(Adjoint(weights * scores, image))
                return image
            case Scores(vector, skipped, scores):
                yield request
                scores[skipped == 0] -= dot(self._mean, vector)
            case Adjoint(weights, sums):
                yield request
                add_scaled(sums, -lane_sum(weights, len(weights)), self._mean)
            case _:
                return (yield request)
        return None

    def decision(self, iterate: Iterate) -> Linear:
        """The decision over rows as they are."""
        intercept = iterate.coefficients[-1] + self._level - dot(self._mean, iterate.coefficients)
        return Linear(iterate.coefficients[:-1], float(intercept))
