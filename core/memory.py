"""How much memory a training takes, at most, as far as can be told before it begins. The numbers are measured ones, rounded up."""

from core.kernel_options import KernelOptions
from core.options import BalancedOptions, Options

_SIDE_BY_SIDE = 8
"""two-class problems that are solved at a time"""
_BASE = 64 << 20
_PER_DOCUMENT, _PER_FEATURE = 130, 120
"""of the vectors of one two-class problem"""


def training_bytes(options: Options, n_documents: int, n_labeled: int, n_nonzeros: int, n_features: int, n_classes: int) -> int:
    """Bytes beyond those of an idle worker: the copy of the rows, the vectors of the problems solved at a time, their results, a kernel's cache."""
    n_problems = 1 if n_classes == 2 else n_classes
    estimated = isinstance(options, BalancedOptions) and options.estimated
    seen = min(n_features, n_nonzeros)
    rows = 8 * n_nonzeros + 8 * n_documents + min(12 * n_features, 16 * n_nonzeros)
    if estimated:  # on scaled values, all folds and fractions together
        rows += 4 * n_nonzeros
    problems = (_SIDE_BY_SIDE if estimated else min(n_problems, _SIDE_BY_SIDE)) * (_PER_DOCUMENT * n_documents + _PER_FEATURE * seen)
    results = 16 * n_problems * (n_documents + seen)
    n_points = n_documents if isinstance(options, BalancedOptions) else n_labeled
    cache = min(options.cache_bytes, 4 * n_points**2) if isinstance(options, KernelOptions) else 0
    return _BASE + rows + problems + results + cache
