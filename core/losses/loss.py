"""The interface of a loss that core.optimizers.newton minimises."""

from typing import Protocol

import numpy as np

from core.numerics.vectors import Vector


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
