"""Upper bound on the memory of a training, before it begins. The constants are measured, rounded up."""

from typing import NamedTuple

from core.numerics.width import WIDTH
from core.one_vs_rest import n_problems
from core.options.auto import AutoOptions
from core.options.base import BalancedOptions, Options, SolverOptions, TrainingSize
from core.options.text import TextOptions
from core.selection.eligibility import label_spreading_applies, label_spreading_bytes, naive_bayes_applies, naive_bayes_bytes

_BASE = 64 << 20
_REORDERED = 32
"""bytes a nonzero: another copy of the rows while it is made, for the models of cross-validation"""
_PER_DOCUMENT, _PER_FEATURE = 130, 120
"""of the vectors of one two-class problem"""


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


def training_bytes(options: Options, size: TrainingSize) -> int:
    """Bytes beyond those of an idle worker: a copy of the rows, the vectors of the problems solved at a time, their results, the algorithm's own."""
    # on scaled values, all folds and fractions together; auto also compares where no fraction is left to find
    compared = isinstance(options, AutoOptions) or (isinstance(options, BalancedOptions) and options.estimated)
    n_documents, n_nonzeros, n_features, n_classes = size.n_documents, size.n_nonzeros, size.n_features, size.n_classes
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
    problems = (WIDTH if compared else size.n_parallel) * (_PER_DOCUMENT * n_documents + _PER_FEATURE * seen)
    results = 16 * n_problems(n_classes) * (n_documents + seen)
    return _BASE + rows + problems + results + options.working_bytes(size._replace(n_features=seen))
