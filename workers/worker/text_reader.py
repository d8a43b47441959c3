"""Texts as rows, by an engine: their terms are counted in memory, or in parts, here or by a cluster. All give the same bits."""

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import NamedTuple

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.space import Space
from core.documents.text.batches import TextCheckpoint
from core.documents.text.mapped_counts import MappedCounter
from core.documents.text.tfidf import TextTerms
from core.documents.text.tfidf_by_parts import Counter, fit_by_parts
from core.documents.text.tfidf_fit import fit_terms
from core.documents.text.tfidf_rows import weighed
from core.engine.names import EngineName
from core.options.text import TextOptions
from core.progress import Part
from workers.cluster.address import ClusterAddress
from workers.errors import JobTooLarge
from workers.store import Store


class TextEngine(NamedTuple):
    """The engine by which the terms of texts are found."""

    name: EngineName
    table_bytes: int = 0
    """bytes that tables of counts may take where the others lie in files; 0: none lie there"""
    cluster: ClusterAddress | None = None


class TextReader:
    """Finds the terms of texts, and weighs them."""

    def __init__(self, engine: TextEngine, store: Store, prefix: str, space: Space, threads: int | None) -> None:
        """What outgrows memory lies in the ``space``, what a cluster reads below ``prefix`` in the store."""
        self.engine = engine.name
        """Engine that found the terms, or is to find them."""
        self._given, self._store, self._prefix, self._space, self._threads = engine, store, prefix, space, threads

    def fit(self, texts: TextRows, options: TextOptions, report: TextCheckpoint) -> TextTerms:
        """The terms of the texts. Where they outgrow memory against what was expected, which ``report`` says by JobTooLarge, they go to files."""
        reached = 0.0

        def note(done: float, held: int) -> None:
            nonlocal reached
            reached = done
            report(done, held)

        if self.engine == "memory":
            try:
                return fit_terms(texts, options, note, self._threads)
            except JobTooLarge:
                if not self._given.table_bytes:
                    raise
                self.engine = "mapped"
        rest = Part(reached, 1.0)
        with self._counter(texts) as counting:
            return fit_by_parts(counting, texts, options, lambda done, held: report(rest.at(done), held))

    @contextmanager
    def _counter(self, texts: TextRows) -> Iterator[Callable[[TextCheckpoint], Counter]]:
        """What makes the counter of the engine. Raises ClusterUnavailable."""
        if self._given.cluster is None:
            yield partial(MappedCounter, texts, self._space, self._given.table_bytes, self._threads)
            return
        from workers.cluster.counter import ClusterCounter
        from workers.cluster.engine import ClusterStore, connected

        url, files, store_url = self._given.cluster
        stored = ClusterStore(self._store, store_url, f"{self._prefix}/texts/{secrets.token_hex(4)}")
        with connected(url, files) as client, closing(stored):
            yield partial(ClusterCounter, texts, client, stored)

    def weighed(self, texts: TextRows, terms: TextTerms, report: TextCheckpoint) -> Iterator[SparseRows]:
        """The rows of the texts, a span after the other."""
        return weighed(texts, terms, report, self._threads)
