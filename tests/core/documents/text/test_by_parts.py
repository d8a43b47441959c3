"""Terms of texts that are counted in parts: the same as in memory to the bit, however the texts are cut, and in
whatever order the parts are merged.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from core.documents.kinds import TextRows
from core.documents.rows import MEMORY
from core.documents.text import batches, counts
from core.documents.text.batches import TextCheckpoint
from core.documents.text.counts import (
    Frequencies,
    MappedCounter,
    Run,
    WordCounts,
    in_bucket,
    merged_terms,
    merged_words,
    term_runs,
    word_runs,
)
from core.documents.text.tfidf import TextTerms
from core.documents.text.tfidf_fit import fit_by_parts, fit_terms
from core.documents.text.words import Words, drawn_multiplier
from core.errors import InvalidDocuments
from core.options.text import TextOptions
from core.progress import Span
from core.threads import Threads
from tests.core.documents.text.collections_of_texts import ODD, collection, texts_of

OPTIONS = [
    {},
    {"ngrams": 1},
    {"min_documents": 1},
    {"max_terms": 150},
    {"max_terms": 40, "min_documents": 3},
    {"max_terms": 60, "ngrams": 1},
]


class Apart(MappedCounter):
    """Counts of texts that are cut at given places into parts, which are merged in a drawn order, in so many
    buckets.
    """

    def __init__(self, texts: TextRows, cuts: Sequence[int], n_buckets: int, report: TextCheckpoint) -> None:
        super().__init__(texts, MEMORY, 0, 1, report)
        edges = [0, *sorted(cut % (texts.n_rows + 1) for cut in cuts), texts.n_rows]
        self._parts = [texts.between(*edge) for edge in pairwise(edges) if edge[0] < edge[1]]
        self._n_buckets, self._order = n_buckets, random.Random(len(cuts))

    def words(self, least: int, part: Span) -> Iterator[WordCounts]:
        multiplier = drawn_multiplier()
        runs = [run for own in self._parts for run in word_runs(own, multiplier, 0, Threads(1), self._report)]
        for bucket in self._sampled(runs):
            yield merged_words(bucket, least, lambda held: None)

    def terms(self, words: Sequence[str], least: int, most: int, part: Span) -> Iterator[Frequencies]:
        multiplier, known = drawn_multiplier(), Words.of(TextRows.of(words))
        runs = [run for own in self._parts for run in term_runs(own, known, multiplier, 0, Threads(1), self._report)]
        for bucket in self._sampled(runs):
            yield merged_terms(bucket, multiplier, least, most)

    def _sampled(self, runs: Sequence[Run]) -> Iterator[list[Run]]:
        for number in self._order.sample(range(self._n_buckets), self._n_buckets):
            yield [in_bucket(run, number, self._n_buckets) for run in self._order.sample(runs, len(runs))]


def check_equal(counting: Callable[[TextCheckpoint], MappedCounter], texts: TextRows, options: TextOptions) -> None:
    def outcome(fit: Callable[[], TextTerms]) -> object:
        try:
            terms = fit()
        except InvalidDocuments as error:
            return str(error)
        return list(terms.words), terms.keys.tobytes(), terms.idf.tobytes(), terms.keys.dtype, terms.idf.dtype

    expected = outcome(lambda: fit_terms(texts, options, lambda done, held: None))
    assert outcome(lambda: fit_by_parts(counting, texts, options, lambda done, held: None)) == expected


@profile(max_examples=30)
@given(
    texts=texts_of,
    min_documents=st.integers(1, 3),
    ngrams=st.sampled_from([1, 2]),
    max_terms=st.integers(1, 12),
    cuts=st.lists(st.integers(0, 9), max_size=3),
    n_buckets=st.integers(1, 5),
)
def test_whatever_the_texts_the_cuts_and_the_order(
    texts: list[str], min_documents: int, ngrams: int, max_terms: int, cuts: list[int], n_buckets: int
) -> None:
    rows = TextRows.of(texts)
    options = TextOptions(min_documents=min_documents, ngrams=ngrams, max_terms=max_terms)  # type: ignore[arg-type]
    check_equal(partial(Apart, rows, cuts, n_buckets), rows, options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_runs_in_files_of_a_large_collection(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    monkeypatch.setattr(batches, "SPAN_ROWS", 30)
    monkeypatch.setattr(batches, "_SERIAL", 0)
    monkeypatch.setattr(counts, "_TABLE", 4)
    monkeypatch.setattr(counts, "_LEAST_BLOCK", 5000)
    rows = TextRows.of([*collection(), *ODD])
    for n_threads in (1, 3):
        check_equal(partial(MappedCounter, rows, MEMORY, 20_000, n_threads), rows, TextOptions(**options))


def test_words_that_many_terms_tie_with() -> None:
    """Pairs as frequent as the last term that is kept: the first of them in order are kept, whatever words they
    have."""
    rows = TextRows.of(["aa zz yy", "aa zz yy", "bb cc", "bb cc", "xx aa zz", "xx"])
    for max_terms in range(1, 12):
        check_equal(partial(Apart, rows, [2, 3], 3), rows, TextOptions(max_terms=max_terms))


def test_texts_in_the_middle_of_others() -> None:
    """A view of texts, which begins where others end."""
    rows = TextRows.of(["never seen", *collection(40), "nor this"]).between(1, 41)
    check_equal(partial(MappedCounter, rows, MEMORY, 1 << 20, 1), rows, TextOptions())


def test_progress_grows_and_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SPAN_ROWS", 30)
    rows, reports = TextRows.of(collection(600)), list[tuple[float, int]]()
    terms = fit_by_parts(
        partial(MappedCounter, rows, MEMORY, 1 << 18, 1),
        rows,
        TextOptions(min_documents=1),
        lambda done, held: reports.append((done, held)),
    )
    shares = [done for done, _ in reports]
    assert shares == sorted(shares)
    assert 0 <= shares[0] < 0.1 < 0.9 < shares[-1] <= 1
    assert np.diff(shares).max() < 0.3
    assert max(held for _, held in reports) >= 12 * len(terms.keys)
