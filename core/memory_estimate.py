"""Upper bound on the memory of a training, before it begins. The constants are measured, rounded up."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.documents.kinds import NamedRows, PartRows, Rows, TextRows
from core.documents.rows import SparseRows, full_is_smaller
from core.engine import EngineName
from core.engine.parts import count_of_parts
from core.numerics.width import WIDTH, most_at_a_time
from core.one_vs_rest import n_problems
from core.options.auto import ridge_bytes
from core.options.base import Options, TrainingSize
from core.options.text import TextOptions
from core.selection.registry import MANY_ROWS, candidate_bytes, left_out_bytes

_BASE = 64 << 20
_REORDERED = 32
"""bytes a nonzero: another copy of the rows while it is made, for the models of cross-validation"""
_SLICED = 64 << 20
"""bytes of slices of mapped rows that are worked on outside passes, where methods are compared"""
_COPIED = 8
"""bytes a nonzero: a copy of the rows, with frequent features alone"""
_PART = 12
"""bytes a nonzero: the rows of each part alone, scaled"""
_PER_DOCUMENT, _PER_FEATURE = 130, 120
"""bytes of the vectors of one two-class problem"""
_OF_LABELS = 80
"""bytes of a document and a label: scores, standardised ones, probabilities, and what their sigmoids are fitted to"""
_BEGUN_DOCUMENT, _BEGUN_FEATURE = 16, 28
"""bytes of the vectors of a further two-class problem that another thread has begun, and that waits for its passes"""


class _Language(NamedTuple):
    """Upper bounds for texts, measured on collections from 40 kB to 90 MB, in English and by Zipf's law.

    Terms grow by a power (Heaps, 1978).
    """

    bytes_held: float
    """bytes held while the terms are found and weighed, by bytes of text to the ``power``"""
    power: float
    nonzeros: float
    """nonzeros by bytes of text"""


_LANGUAGES = {1: _Language(1600, 0.6, 0.16), 2: _Language(330, 0.75, 0.26)}
"""language by words of a term"""


_LEAST_TABLES, _MOST_TABLES = 32 << 20, 512 << 20
"""bytes that tables of counts take where runs of counts lie in files; more would hardly gain anything"""
_GROWN = 2
"""times the bytes of tables: while they grow, and while they are sorted"""
_PER_TERM = 250
"""bytes of a term with its words, in the tables by which texts are read"""


class RowsSize(NamedTuple):
    """Size of the rows of documents, as far as it is known before they are made."""

    n_rows: int
    n_nonzeros: int
    n_features: int
    making_bytes: int = 0
    """memory that making the rows takes"""
    least_making_bytes: int = 0
    """the same where counts of terms lie in files"""
    n_parts: int = 1
    """number of parts of the documents"""

    @classmethod
    def of(cls, rows: Rows, text: Mapping[str, int] | None) -> "RowsSize":
        """Size of documents, of text an estimate by the options of text."""
        match rows:
            case SparseRows():
                return cls(rows.n_rows, rows.n_nonzeros, rows.n_features)
            case NamedRows():
                return cls.of(rows.rows, None)
            case TextRows():
                n_bytes = int(rows.indptr[-1] - rows.indptr[0])
                return expected_text_size(rows.n_rows, n_bytes, TextOptions.parse(text or {}))
            case PartRows():
                return cls.of_parts(rows.n_rows, [cls.of(part, text) for part in rows.parts.values()])

    @classmethod
    def of_parts(cls, n_rows: int, sizes: "Sequence[RowsSize]") -> "RowsSize":
        """Size of documents by the sizes of their parts."""
        nonzeros, features = sum(size.n_nonzeros for size in sizes), sum(size.n_features for size in sizes)
        making, least = max(size.making_bytes for size in sizes), max(size.least_making_bytes for size in sizes)
        return cls(n_rows, nonzeros, features, making, least, len(sizes))

    @classmethod
    def of_vectors(cls, n_rows: int, width: int) -> "RowsSize":
        """Size of dense vectors of ``width`` numbers."""
        return cls(n_rows, n_rows * width, width)


def expected_text_size(n_rows: int, n_bytes: int, options: TextOptions) -> RowsSize:
    """Expected size of texts of ``n_bytes`` in all, before their terms are known.

    Making the rows finds out about unusual languages in time.
    """
    language = _LANGUAGES[options.ngrams]
    n_nonzeros = int(language.nonzeros * n_bytes)
    n_terms = min(options.max_terms, n_nonzeros // options.min_documents)
    making_bytes = _BASE + int(language.bytes_held * n_bytes**language.power)
    return RowsSize(n_rows, n_nonzeros, n_terms, making_bytes, _BASE + _GROWN * _LEAST_TABLES + _PER_TERM * n_terms)


def table_bytes(size: RowsSize, most_bytes: int) -> int:
    """Bytes that tables of counts may take where runs of counts lie in files, and a job may have ``most_bytes``."""
    return min(_MOST_TABLES, _LEAST_TABLES + max(0, most_bytes - size.least_making_bytes) // _GROWN)


def training_bytes(options: Options, size: TrainingSize, engine: EngineName = "memory") -> int:
    """Bytes beyond an idle worker: a copy of the rows, vectors of the problems solved at a time, their results, and the
    algorithm's own.

    Mapped rows, and those of a cluster, count as none: only the sums of their parts do.
    """
    # many solutions side by side, of all folds and fractions, on scaled values
    compared = (options.selects_method or options.estimated) and not size.several
    n_documents, n_nonzeros, n_features, n_classes = size.n_documents, size.n_nonzeros, size.n_features, size.n_classes
    seen = min(n_features, n_nonzeros)
    rows = 8 * n_documents + min(12 * n_features, 16 * n_nonzeros)
    rows += _held_bytes(options, size, seen) if engine == "memory" else _unheld_bytes(options, size, seen)
    if size.several:
        rows += _OF_LABELS * n_classes * n_documents + (ridge_bytes(size) if options.selects_method else 0)
    elif options.selects_method:
        rows += candidate_bytes(size._replace(n_features=seen))
    if compared:
        rows += left_out_bytes(size.n_labeled, n_classes)
    together = most_at_a_time(n_documents, seen) if compared else size._replace(n_features=seen).n_sharing
    problems = together * (_PER_DOCUMENT * n_documents + _PER_FEATURE * seen)
    problems += max(0, min(n_problems(n_classes), size.n_threads) - WIDTH) * (
        _BEGUN_DOCUMENT * n_documents + _BEGUN_FEATURE * seen
    )
    results = 16 * n_problems(n_classes) * (n_documents + seen)
    return _BASE + rows + problems + results + options.working_bytes(size._replace(n_features=seen))


def _held_bytes(options: Options, size: TrainingSize, seen: int) -> int:
    """Bytes of copies of the rows in memory."""
    n_documents, n_nonzeros = size.n_documents, size.n_nonzeros
    # kernel methods build the column indices of dense rows, so they hold these as sparse rows
    full = not (options.selects_method or options.holds_rows) and full_is_smaller(n_documents, n_nonzeros, seen)
    copy = 4 * n_documents * seen if full else 8 * n_nonzeros
    rows = copy
    if options.selects_method or options.estimated:
        rows += copy if full else (4 if n_documents < MANY_ROWS else 4 + _COPIED) * n_nonzeros
    if options.needs_probabilities:
        rows += copy if full else _REORDERED * n_nonzeros
    return rows + (_PART * n_nonzeros if options.selects_method and size.n_parts > 1 else 0)


def _unheld_bytes(options: Options, size: TrainingSize, seen: int) -> int:
    """Bytes of the slices and of the sums of parts of rows that are not in memory."""
    compared = options.selects_method or options.estimated
    vectors = 1 + (WIDTH if compared or size.n_parallel > 1 else 0)
    return (_SLICED if compared else 0) + 8 * (seen + 1) * count_of_parts(size.n_nonzeros, seen) * vectors


def cheapest_engine(
    options: Options, size: TrainingSize, most_bytes: int, offered: Sequence[EngineName]
) -> EngineName | None:
    """The first of these engines with which a training needs no more memory, None if there is none.

    Only memory has all rows in one process.
    """
    fit = (
        each
        for each in offered
        if (each == "memory" or not options.holds_rows) and training_bytes(options, size, each) <= most_bytes
    )
    return next(fit, None)
