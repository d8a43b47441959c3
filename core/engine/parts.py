"""The parts into which rows are cut, by their nonzeros and features alone: so all engines, and all numbers of threads,
add up the same sums.
"""

import numpy as np

from core.documents.rows import SparseRows
from core.numerics.width import WIDTH

_PART_NONZEROS, _PART_SHARE = 1 << 16, 12
"""a part has at least so many nonzeros, and so many for each feature: clearing and adding up its sums must not cost
more than reading its rows"""
_MOST_PARTS, _LARGE_PART, _MOST_LARGE_PARTS = 8, 1 << 22, 64
"""parts at most; of large data as many as have some million nonzeros each"""
_SUM_BYTES, _NONZERO_BYTES = 1 << 26, 4
"""of the sums of all parts of a block together, at most: so many, or so many for each nonzero"""


def part_ranges(rows: SparseRows, n_parts: int | None = None) -> list[tuple[int, int]]:
    """Ranges of rows, in order, that together are all of them, with about the same number of nonzeros each (a row
    weighs at least one).
    """
    count = n_parts or count_of_parts(rows.n_nonzeros, rows.n_features)
    weight = rows.indptr - rows.indptr[0] + np.arange(len(rows.indptr))
    bounds = np.searchsorted(weight, np.linspace(0, weight[-1], count + 1).round())
    bounds[-1] = rows.n_rows
    return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))


def count_of_parts(n_nonzeros: int, n_features: int) -> int:
    """How many parts there are. It depends on these two numbers alone, and never on the machine."""
    length = n_features + 1
    most = max(_MOST_PARTS, min(_MOST_LARGE_PARTS, n_nonzeros // _LARGE_PART))
    fit = max(_SUM_BYTES, _NONZERO_BYTES * n_nonzeros) // (8 * WIDTH * length)
    count = max(1, min(n_nonzeros // _PART_NONZEROS, max(2, n_nonzeros // (_PART_SHARE * length)), most))
    # powers of two, the exponent round(log2(count)) in whole numbers: of three parts, one of two threads would read two
    return 1 << min((count * count).bit_length() // 2, max(1, fit).bit_length() - 1)
