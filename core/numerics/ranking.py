"""The positions of the largest numbers, equal ones by position:

NumPy's partitions order equal numbers by the processor.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def positions_of_largest(values: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Positions of the ``count`` largest values, or of all if they are fewer, ascending; of equal values the first."""
    if len(values) <= count:
        return np.arange(len(values))
    if count <= 0:
        return np.zeros(0, np.int64)
    least = np.partition(values, len(values) - count)[len(values) - count]
    above, equal = np.flatnonzero(values > least), np.flatnonzero(values == least)
    return np.sort(np.concatenate([above, equal[: count - len(above)]]))
