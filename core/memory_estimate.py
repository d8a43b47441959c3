"""How much memory a training takes, at most, as far as can be told before it begins. The numbers are measured ones, rounded up."""

from typing import NamedTuple

from core.numerics.width import WIDTH
from core.one_vs_rest import n_problems
from core.options.auto import AutoOptions
from core.options.base import BalancedOptions, Options, SolverOptions
from core.options.cutting_planes import Cuts3vmOptions
from core.options.kernel import KernelOptions, RampOptions
from core.options.relaxation import CtsvmOptions
from core.options.text import TextOptions
from core.selection.eligibility import label_spreading_applies, label_spreading_bytes, naive_bayes_applies, naive_bayes_bytes

_BASE = 64 << 20
_REORDERED = 32
"""a nonzero: another copy of the rows while it is made, for the models that are not told all labels"""
_PER_DOCUMENT, _PER_FEATURE = 130, 120
"""of the vectors of one two-class problem"""
_PLANES = 64
"""of one two-class problem of cuts3vm: more than half as many, of which the arrays are doubled as they grow"""
_INVERTED, _SCORED = 8, 16
"""a nonzero: the rows by their columns, of all solvers; the rows that one solver scores, twice"""


class _Language(NamedTuple):
    """What texts have, at most, of collections from 40 kB to 90 MB in English and by Zipf's law; what differs grows by a power (Heaps, 1978)."""

    held: float
    """bytes held while the terms are found, by bytes of text to the ``power``"""
    power: float
    nonzeros: float
    """by bytes of text"""


_LANGUAGES = {1: _Language(2400, 0.6, 0.16), 2: _Language(480, 0.75, 0.26)}
"""by words of a term"""


class Size(NamedTuple):
    """Of documents that are to be trained on, as far as it is known."""

    n_rows: int
    n_nonzeros: int
    n_features: int
    reading: int = 0
    """bytes that it takes to make rows of them"""


def expected_of_text(n_rows: int, n_bytes: int, options: TextOptions) -> Size:
    """Of texts of so many bytes in all, before their terms are known: of a language as others are. What is of another is found out in time."""
    language = _LANGUAGES[options.ngrams]
    n_nonzeros = int(language.nonzeros * n_bytes)
    n_terms = min(options.max_terms, n_nonzeros // options.min_documents)
    return Size(n_rows, n_nonzeros, n_terms, _BASE + int(language.held * n_bytes**language.power))


def training_bytes(options: Options, n_documents: int, n_labeled: int, n_nonzeros: int, n_features: int, n_classes: int) -> int:
    """Bytes beyond those of an idle worker: the copy of the rows, the vectors of the problems solved at a time, their results, kernel values."""
    # on scaled values, all folds and fractions together; auto also compares where no fraction is left to find
    compared = isinstance(options, AutoOptions) or (isinstance(options, BalancedOptions) and options.estimated)
    seen = min(n_features, n_nonzeros)
    rows = 8 * n_nonzeros + 8 * n_documents + min(12 * n_features, 16 * n_nonzeros)
    if compared:
        rows += 4 * n_nonzeros
    if isinstance(options, SolverOptions) and options.probabilities:
        rows += _REORDERED * n_nonzeros
    if isinstance(options, AutoOptions) and label_spreading_applies(n_documents, seen, n_nonzeros):
        rows += label_spreading_bytes(n_documents, seen, n_classes)
    if isinstance(options, AutoOptions) and naive_bayes_applies(n_documents, seen, n_nonzeros, n_classes):
        rows += naive_bayes_bytes(n_documents, seen, n_classes)
    together = min(n_problems(n_classes), WIDTH)
    problems = (WIDTH if compared else together) * (_PER_DOCUMENT * n_documents + _PER_FEATURE * seen)
    own = together * _own_bytes(options, n_documents, n_nonzeros, seen)
    results = 16 * n_problems(n_classes) * (n_documents + seen)
    matrices = options.matrix_bytes(n_documents, n_classes) if isinstance(options, CtsvmOptions) else 0
    return _BASE + rows + problems + own + results + _cached(options, n_documents, n_labeled) + matrices


def _own_bytes(options: Options, n_documents: int, n_nonzeros: int, n_seen: int) -> int:
    """What only this algorithm holds, for each two-class problem that is solved at a time."""
    scored = 0 if isinstance(options, BalancedOptions) else _SCORED
    if isinstance(options, Cuts3vmOptions):
        return _PLANES * (8 * n_seen + n_documents // 8)
    if isinstance(options, KernelOptions):
        return (_INVERTED + scored) * n_nonzeros
    return 0


def remedy(options: Options, n_documents: int, n_labeled: int) -> str:
    """What makes a training need less, as the end of a sentence."""
    cached = _cached(options, n_documents, n_labeled)
    cache = f"lower cache_bytes, since {cached / 2**20:.0f} MiB of it are for kernel values, or " if cached else ""
    return f"{cache}train on fewer documents"


def _cached(options: Options, n_documents: int, n_labeled: int) -> int:
    """Bytes of the kernel values that are kept."""
    n_points = n_documents if isinstance(options, BalancedOptions) else n_labeled
    if not isinstance(options, KernelOptions):
        return 0
    kept = min(options.cache_bytes, 4 * n_points**2)
    if isinstance(options, RampOptions) and options.start == "subset":
        kept += min(options.cache_bytes, WIDTH * 4 * (round(options.subset_fraction * n_labeled) + 2) ** 2)
    return kept
