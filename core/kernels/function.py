"""The kernel functions on inner products, for prediction; core.kernels.gram has them compiled, for
training."""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Name = Literal["linear", "rbf", "poly"]
Float32Matrix = NDArray[np.float32]
Values = NDArray[np.floating[Any]]
"""float32, or float64 where that is too narrow"""

_FAR = 2.0**24
"""share of the median |x|² from which on a row is far: beside its square float32 has no digit left for the others'
distances"""
_TILE = 1 << 15
"""numbers at a time: few enough to stay in the processor's cache between two operations"""


class Kernel(NamedTuple):
    """A kernel function k(x, z) with its parameters.

    ``linear`` x·z, ``rbf`` exp(−gamma |x − z|²), ``poly`` (gamma x·z + coef0)^degree; a kernel ignores the parameters
    of others.
    """

    name: Name
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def apply_to_products(self, products: Values, left: Values, right: Values) -> None:
        """Replace inner products by kernel values, in place and in their precision.

        ``products`` of shape (n_left, n_right) hold x·z; ``left`` and ``right`` are |x|² and |z|², shape (n_left,) and
        (n_right,).
        """
        if self.name == "linear" or not products.size:
            return
        height = max(1, _TILE // products.shape[1])
        for start in range(0, len(products), height):
            tile = products[start : start + height]
            if self.name == "rbf":
                self._rbf(tile, left[start : start + height], right)
            else:
                self._poly(tile)

    def diagonal(self, norms: NDArray[np.float64]) -> NDArray[np.float64]:
        """k(x, x) of rows with these |x|², shape (n_rows,); infinite where it is beyond float64."""
        if self.name == "rbf":
            return np.ones_like(norms)
        diagonal = norms.copy()
        if self.name == "poly":
            with np.errstate(over="ignore"):
                self._poly(diagonal)
        return diagonal

    def _rbf(self, tile: Values, left: Values, right: Values) -> None:
        tile *= 2.0
        tile -= left[:, None] + right  # the sum first: k(x, z) and k(z, x) are then the same number
        tile *= self.gamma
        np.minimum(tile, 0.0, out=tile)
        np.exp(tile, out=tile)

    def _poly(self, tile: Values) -> None:
        """The powers by multiplication: a library's function for them rounds as the processor has it."""
        tile *= self.gamma
        tile += self.coef0
        base = tile.copy()
        for _ in range(self.degree - 1):
            tile *= base


def near(norms: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Which rows are not far from the others, by their |x|²."""
    positive = norms[norms > 0]
    return np.asarray(norms <= _FAR * float(np.median(positive))) if len(positive) else np.ones(len(norms), bool)
