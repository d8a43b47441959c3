"""How loops are compiled, so that every x86-64 processor computes the same bits.

No ``fastmath``: the compiler may not reorder sums, nor fuse a product with a sum, since either would let the width of a
processor's registers decide digits. A sum over many numbers is written out in a fixed number of lanes instead
(core.numerics.vectors, core.engine.csr_loops). Elementary functions come from core.numerics.compiled_elementary;
division by zero gives what IEEE 754 says.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

compiled = njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written to, which Numba sees as another type.

    Arrays from a store are such views: loops are compiled for that type alone.
    """
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view
