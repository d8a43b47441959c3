"""How many right-hand sides share a pass over the rows, and so how many two-class problems are solved at a time."""

WIDTH = 8
"""float64 numbers of one cache line"""

_SHORT = 1 << 17
"""rows and features up to which the vectors of nearly two widths of problems may be in memory: some 17 MB each at
most"""


def most_at_a_time(n_rows: int, n_features: int) -> int:
    """Number of two-class problems under way at a time, at most.

    The last ones take turns: of 12 that take eight passes each, eight and then four would make 16 passes, the twelve by
    turns make twelve.
    """
    return 2 * WIDTH - 1 if n_rows + n_features <= _SHORT else WIDTH
