"""Text as rows, against scikit-learn's own; and finding the terms, however the texts are sliced and merged."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as profile
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from core.documents.kinds import TextRows, spans
from core.documents.rows import SparseRows
from core.documents.text import batches, counts
from core.documents.text.tfidf import TextTerms
from core.documents.text.tfidf_fit import fit_terms, weighed
from core.documents.vocabulary import NUMBERS, Names, Vocabulary
from core.errors import InvalidDocuments
from core.models.io import read_vocabulary
from core.models.model import LinearModel
from core.options.text import TextOptions
from tests.core.documents.text.collections_of_texts import ODD, collection, texts_of


def fitted(texts: Sequence[str], **options: int) -> TextTerms:
    return fit_terms(TextRows.of(texts), TextOptions(**options), lambda done, held: None)  # type: ignore[arg-type]


def check_equal(texts: Sequence[str], others: Sequence[str], min_documents: int, ngrams: int) -> None:
    """Vocabulary, weights of the documents it was found in and of others: the same numbers, but for the last bit, which
    the processor decides in the oracle."""
    oracle = TfidfVectorizer(ngram_range=(1, ngrams), sublinear_tf=True, min_df=min_documents)
    try:
        oracle.fit(texts)
    except ValueError:
        with pytest.raises(
            InvalidDocuments, match=f"(no word occurs in {min_documents} or more|none) of the {len(texts)} documents"
        ):
            fitted(texts, min_documents=min_documents, ngrams=ngrams)
        return
    terms = fitted(texts, min_documents=min_documents, ngrams=ngrams)
    assert terms.named(np.arange(len(terms.keys))) == oracle.get_feature_names_out().tolist()
    np.testing.assert_array_max_ulp(terms.idf, oracle.idf_, 1)
    for some in (texts, others):
        expected = oracle.transform(some)
        expected.sort_indices()
        rows = terms.read(TextRows.of(some)).rows
        assert rows.n_features == expected.shape[1]
        np.testing.assert_array_equal(rows.indptr, expected.indptr)
        np.testing.assert_array_equal(rows.indices, expected.indices)
        np.testing.assert_array_max_ulp(rows.values, expected.data.astype(np.float32), 1)
        check_weighed(TextRows.of(some), terms, rows)


def check_weighed(texts: TextRows, terms: TextTerms, expected: SparseRows, threads: int = 1) -> None:
    """The compiled loops give the same bits."""
    parts = list(weighed(texts, terms, lambda done, held: None, threads))
    np.testing.assert_array_equal(np.concatenate([np.diff(part.indptr) for part in parts]), np.diff(expected.indptr))
    np.testing.assert_array_equal(np.concatenate([part.indices for part in parts]), expected.indices)
    np.testing.assert_array_equal(np.concatenate([part.values for part in parts]), expected.values)


@given(texts=texts_of, others=texts_of, min_documents=st.integers(1, 3), ngrams=st.integers(1, 2))
@example(texts=ODD, others=ODD[::-1], min_documents=1, ngrams=2)
@profile(max_examples=200, deadline=None)
def test_terms_and_weights_are_scikit_learns(
    texts: list[str], others: list[str], min_documents: int, ngrams: int
) -> None:
    try:
        TextRows.of([*texts, *others])
    except UnicodeEncodeError:  # lone surrogates, which no door lets in
        return
    check_equal(texts, others, min_documents, ngrams)


def test_a_large_collection_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SPAN_ROWS", 70)
    monkeypatch.setattr(counts, "_TABLE", 4)
    texts = collection()
    check_equal(texts, collection(200, seed=1), 2, 2)


@pytest.mark.parametrize("threads", [2, 5])
def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(batches, "SPAN_ROWS", 70)
    monkeypatch.setattr(batches, "_SERIAL", 0)
    rows = TextRows.of([*collection(), *ODD])
    alone, together = (fit_terms(rows, TextOptions(), lambda done, held: None, count) for count in (1, threads))
    assert alone.words == together.words
    np.testing.assert_array_equal(alone.keys, together.keys)
    np.testing.assert_array_equal(alone.idf, together.idf)
    check_weighed(rows, together, alone.read(rows).rows, threads)


def test_a_term_of_very_many_occurrences_weighs_the_same() -> None:
    rows = TextRows.of(["sun " * 5000 + "moon", "sun moon " * 300, "sun"])
    terms = fit_terms(rows, TextOptions(), lambda done, held: None)
    check_weighed(rows, terms, terms.read(rows).rows)


def test_a_slice_without_words_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SPAN_ROWS", 10)
    texts = collection(30)
    check_equal(["", "."] * 10 + texts[:15] + ["! ?"] * 20 + texts[15:], texts, 2, 2)
    with pytest.raises(InvalidDocuments):
        fitted(["."] * 40)


def test_the_first_terms_by_documents_are_kept() -> None:
    """Slowly: sort all terms by the documents they occur in, then by themselves."""
    texts = collection(400)
    every = fitted(texts, min_documents=1)
    counts = np.bincount(every.read(TextRows.of(texts)).rows.indices, minlength=len(every.keys))
    names = every.named(np.arange(len(every.keys)))
    for most in (1, 7, 100, 1500):
        wanted = sorted(sorted(range(len(names)), key=lambda term: (-counts[term], names[term]))[:most])
        found = fitted(texts, min_documents=1, max_terms=most)
        assert found.named(np.arange(len(found.keys))) == [names[term] for term in wanted]
        np.testing.assert_array_equal(found.idf, every.idf[wanted])
        assert list(found.words) == sorted({word for term in wanted for word in names[term].split()})


def test_long_texts_are_cut_between_words_only() -> None:
    long = " ".join(collection(4000, seed=2))
    assert len(long) > 3 * 2**16
    unbroken = "ab" * 2**17
    check_equal([long, unbroken, long.replace(" ", "\u2003")], ["ab", long[::-1]], 1, 2)


def test_unknown_words_are_counted_and_pairs_do_not_reach_over_them() -> None:
    terms = fitted(["red car", "blue car red"], min_documents=1)
    assert terms.named(np.arange(len(terms.keys))) == ["blue", "blue car", "car", "car red", "red", "red car"]
    read = terms.read(TextRows.of(["red green car", "", "green"]))
    assert (read.unknown, read.n_values) == (2, 4)
    assert terms.named(read.rows.indices) == ["car", "red"]
    assert read.rows.indptr.tolist() == [0, 2, 2, 2]


def test_what_is_stored_comes_back() -> None:
    terms = fitted(collection(200))
    arrays, meta = terms.to_arrays()
    again = read_vocabulary(arrays, json.loads(json.dumps(meta)))
    rows = TextRows.of(collection(50, seed=3))
    for one, other in zip(terms.read(rows).rows, again.read(rows).rows, strict=True):
        np.testing.assert_array_equal(one, other)
    assert terms.facts() == again.facts() == {"n_terms": len(terms.keys), "n_words": len(terms.words)}


@pytest.mark.parametrize(
    ("vocabulary", "n_bytes"),
    [
        (NUMBERS, 0),
        (Names(["größe", "b"]), 8),
        (TextTerms(["a", "été"], np.arange(2, dtype=np.uint64), np.ones(2), 1), 6 + 2 * 16),
    ],
)
def test_the_bytes_of_a_model_are_those_of_its_arrays_and_words(vocabulary: Vocabulary, n_bytes: int) -> None:
    model = LinearModel([0, 1], 2, np.arange(2, dtype=np.uint32), np.zeros((2, 1)), np.zeros(1), vocabulary=vocabulary)
    assert model.facts()["bytes"] == n_bytes + 2 * (4 + 8) + 8


def test_stopping_is_heard_and_memory_is_told() -> None:
    class Enough(Exception):
        pass

    texts, reports = TextRows.of(collection(10_000)), []

    def checkpoint(done: float, held: int) -> None:
        reports.append((done, held))
        if len(reports) == 3:
            raise Enough

    with pytest.raises(Enough):
        fit_terms(texts, TextOptions(), checkpoint)
    assert len(reports) == 3
    del reports[:]
    fit_terms(texts, TextOptions(), lambda done, held: reports.append((done, held)))
    shares = [done for done, _ in reports]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    terms = fitted(list(texts), min_documents=1)
    assert max(held for _, held in reports) >= 12 * len(terms.keys)
    del reports[:]
    with pytest.raises(Enough):
        list(weighed(texts, terms, checkpoint, threads=1))
    assert len(reports) == 3
    del reports[:]
    list(weighed(texts, terms, lambda done, held: reports.append((done, held)), threads=1))
    shares = [done for done, _ in reports]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert min(held for _, held in reports) >= 16 * len(terms.keys)


def test_memory_is_told_of_words_that_are_long() -> None:
    texts, reports = TextRows.of([f"{place}" + "x" * 100_000 for place in range(50)]), []
    terms = fit_terms(texts, TextOptions(min_documents=1), lambda done, held: reports.append(held))
    assert 5_000_000 <= reports[-1] <= 6_000_000
    assert 5_000_000 <= terms.nbytes <= 6_000_000
    names = Names(["\u6211" * 1000 + str(place) for place in range(100)])
    assert 200_000 <= names.nbytes <= 300_000


def test_texts_of_a_slice_may_be_as_long_as_they_like() -> None:
    lengths = np.array([5, 0, 3, 100, 2, 2, 2, 0, 0, 1])
    indptr = np.concatenate([[7], 7 + np.cumsum(lengths)])
    found = list(spans(indptr, 3, 6))
    assert [start for start, _ in found] == [0, *(stop for _, stop in found)][: len(found)]
    assert found[-1][1] == len(lengths)
    assert all(stop - start <= 3 and (stop - start == 1 or lengths[start:stop].sum() <= 6) for start, stop in found)


def test_numbers_of_another_vocabulary() -> None:
    here, there = (
        fitted(["car red", "blue car"], min_documents=1),
        fitted(["red car", "car red green"], min_documents=1),
    )
    numbers, names = here.columns_of(there), there.named(np.arange(len(there.keys)))
    assert len(set(numbers.tolist())) == len(names)
    known = {name: number for name, number in zip(names, numbers.tolist(), strict=True) if number < len(here.keys)}
    assert here.named(np.array(list(known.values()))) == list(known) == ["car", "car red", "red"]
    mine, others = Names(["b", "a"]), Names(["x", "a", "y"])
    assert mine.columns_of(others).tolist() == [2, 1, 4]


def test_rows_of_texts_are_taken_as_they_are() -> None:
    rows = TextRows.of(["one", "", "zwö", "four"])
    assert list(rows.between(1, 3)) == ["", "zwö"]
    assert list(rows.taken(np.array([0, 2]))) == ["one", "zwö"]
    assert list(rows.between(1, 4).taken(np.array([1, 2]))) == ["zwö", "four"]
    assert list(rows.taken(np.zeros(0, np.int64))) == []


def test_documents_of_another_kind_are_not_read() -> None:
    vectors = SparseRows.empty(1, 3)
    with pytest.raises(InvalidDocuments, match="the model was trained on text and takes text, not indices"):
        fitted(["ab cd", "ab"]).read(vectors)
