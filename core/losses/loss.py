"""Losses that core.optimizers.newton minimises: their interface, squared errors, and a loss with the roughness of the
scores beside it, of a whole graph.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from core.engine.requests import Adjoint, Procedure, Product, Request, Scores
from core.numerics.vectors import Vector, dot


class Loss(Protocol):
    """A sum over rows of convex, piecewise quadratic functions of a row's score, with a continuous derivative.

    All vectors have shape (n_rows,). The loss carries its own scaling: what is minimised beside it is λ/2 |w|².
    """

    @property
    def charged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """The rows that can cost anything."""

    def evaluate(self, scores: Vector, slopes: Vector, curvatures: Vector) -> float:
        """The loss of all rows; writes its first derivative by each score to ``slopes`` and its second to
        ``curvatures``.
        """

    def along(self, scores: Vector, direction: Vector, step: float) -> tuple[float, float]:
        """First and (right) second derivative by the step of the loss at ``scores + step · direction``."""

    def update(
        self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector
    ) -> int:
        """The slopes after a step, and where they left the straight line.

        On entry ``scores`` are those after the step, ``slopes`` and ``curvatures`` those before. While a row stays on
        its piece its slope moves by ``step · curvature · direction``; ``jumps`` gets the rest, which is 0 for all rows
        but those that changed pieces. Returns how many these are.
        """


class SquaredError(NamedTuple):
    """``½ costs · (o − targets)²``; both of shape (n_rows,). A core.losses.loss.Loss."""

    costs: Vector
    targets: Vector

    @property
    def charged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """See Loss."""
        return np.asarray(self.costs > 0)

    def evaluate(self, scores: Vector, slopes: Vector, curvatures: Vector) -> float:
        """See Loss."""
        slopes[:], curvatures[:] = self.costs * (scores - self.targets), self.costs
        return 0.5 * float(dot(slopes, scores - self.targets))

    def along(self, scores: Vector, direction: Vector, step: float) -> tuple[float, float]:
        """See Loss."""
        first = dot(self.costs * (scores + step * direction - self.targets), direction)
        return float(first), float(dot(self.costs * direction, direction))

    def update(
        self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector
    ) -> int:
        """See Loss: no row changes pieces."""
        slopes[:] = self.costs * (scores - self.targets)
        return 0


Coupling = Callable[[Vector, int], Vector]
"""A power of a positive semidefinite matrix over rows times scores, such as core.kernels.graph.Laplacian.image."""


class Smoothed:
    """``loss(o) + ½ weight · oᵀ L^power o`` for a coupling L.

    Rows are coupled: Newton's products must go through ``translate``, which scores all rows.
    """

    def __init__(self, loss: Loss, coupling: Coupling, power: int, weight: float) -> None:
        self._loss, self._coupling, self._power, self._weight = loss, coupling, power, weight
        self._line = np.zeros(0), 0.0, 0.0
        """the last direction, and the roughness along it: its slope and its curvature"""

    @property
    def charged(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """See Loss: none, since every product scores all rows anyway."""
        return np.zeros_like(self._loss.charged)

    def evaluate(self, scores: Vector, slopes: Vector, curvatures: Vector) -> float:
        """See Loss; the curvatures are of each row alone."""
        value, pulls = self._loss.evaluate(scores, slopes, curvatures), self._pulls(scores)
        slopes += pulls
        return value + 0.5 * float(dot(scores, pulls))

    def along(self, scores: Vector, direction: Vector, step: float) -> tuple[float, float]:
        """See Loss."""
        first, second = self._loss.along(scores, direction, step)
        if self._line[0] is not direction:
            pulls = self._pulls(direction)
            self._line = direction, float(dot(scores, pulls)), float(dot(direction, pulls))
        _, slope, curvature = self._line
        return first + slope + step * curvature, second + curvature

    def update(
        self, scores: Vector, curvatures: Vector, direction: Vector, step: float, slopes: Vector, jumps: Vector
    ) -> int:
        """See Loss."""
        slopes -= self._pulls(scores - step * direction)
        count = self._loss.update(scores, curvatures, direction, step, slopes, jumps)
        slopes += self._pulls(scores)
        return count

    def translate(self, request: Request) -> Procedure[Any]:
        """Answer ``Xᵀ(C + weight L^power) X p`` to a product, C being the curvatures of the rows (Sindhwani & Keerthi
        2006: the Hessian of a linear Laplacian SVM).
        """
        if not isinstance(request, Product):
            return (yield request)
        yield Scores(request.vector, np.zeros_like(request.weights), request.scores)
        image = np.zeros_like(request.vector)
        yield Adjoint(request.weights * request.scores + self._pulls(request.scores), image)
        return image

    def _pulls(self, scores: Vector) -> Vector:
        return self._weight * self._coupling(scores, self._power)
