"""Texts as rows, by an engine: their terms are counted in memory, or by parts in files. Both give the same bits."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.space import Space
from core.documents.text.batches import TextCheckpoint
from core.documents.text.mapped_counts import MappedCounter
from core.documents.text.tfidf import TextTerms
from core.documents.text.tfidf_by_parts import fit_by_parts
from core.documents.text.tfidf_fit import fit_terms
from core.documents.text.tfidf_rows import weighed
from core.engine import EngineName
from core.options.text import TextOptions
from core.progress import Span
from storage.errors import JobTooLarge


class TextEngine(NamedTuple):
    """The engine by which the terms of texts are found."""

    name: EngineName
    table_bytes: int = 0
    """bytes that tables of counts may take where the others lie in files; 0: none lie there"""


class TextReader:
    """Finds the terms of texts, and weighs them."""

    def __init__(self, engine: TextEngine, space: Space, threads: int | None) -> None:
        """What outgrows memory lies in the ``space``."""
        self.engine = engine.name
        """Engine that found the terms, or is to find them."""
        self._table_bytes, self._space, self._threads = engine.table_bytes, space, threads

    def fit(self, texts: TextRows, options: TextOptions, report: TextCheckpoint) -> TextTerms:
        """The terms of the texts.

        Where they outgrow memory against what was expected, which ``report`` says by JobTooLarge, they go to files.
        """
        reached = 0.0

        def note(done: float, held: int) -> None:
            nonlocal reached
            reached = done
            report(done, held)

        if self.engine == "memory":
            try:
                return fit_terms(texts, options, note, self._threads)
            except JobTooLarge:
                if not self._table_bytes:
                    raise
                self.engine = "mapped"
        rest = Span(reached, 1.0)
        counting = partial(MappedCounter, texts, self._space, self._table_bytes, self._threads)
        return fit_by_parts(counting, texts, options, lambda done, held: report(rest.position(done), held))

    def weighed(self, texts: TextRows, terms: TextTerms, report: TextCheckpoint) -> Iterator[SparseRows]:
        """The rows of the texts, a span after the other."""
        return weighed(texts, terms, report, self._threads)
