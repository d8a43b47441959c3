"""Sparse rows get the weights of terms: counts those that scikit-learn gives the texts they were counted in."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from core.documents.rows import SparseRows
from core.documents.term_weights import TermWeights, weigh
from tests.core.problems import rows_of
from tests.there import there

N_ROWS, N_FEATURES = 60, 200


def counts_of(seed: int, most: int = 6) -> Any:
    """Counts of terms, of which each document has a few; the last one has none."""
    rng = np.random.default_rng(seed)
    counts: Any = sparse.random(N_ROWS, N_FEATURES, 0.05, "csr", np.float32, rng, lambda n: rng.integers(1, most, n))
    counts.data[: len(counts.data) // 50] = 1000
    return sparse.vstack([counts, sparse.csr_matrix(np.zeros((1, N_FEATURES), np.float32))]).tocsr()


def weighed(matrix: Any) -> tuple[TermWeights | None, SparseRows]:
    """The weights, if there are any, and the rows as they are then."""
    rows = rows_of(matrix)
    return weigh(rows, lambda: None), rows


def of_a_small_vocabulary() -> Any:
    rng = np.random.default_rng(4)
    return sparse.csr_matrix(rng.geometric(0.6, (60, 50)) * (rng.random((60, 50)) < 0.3)).astype(np.float32)


def with_an_attached_file() -> Any:
    """A file within a text may have a term 10,000 times: by its square that term outweighs all others together."""
    counts = counts_of(7)
    counts.data[0] = 10_000
    return counts


@pytest.mark.parametrize("counts", [counts_of(0, 2), counts_of(0), of_a_small_vocabulary(), with_an_attached_file()])
def test_counts_are_weighed_as_the_terms_of_texts(counts: Any) -> None:
    terms, rows = weighed(counts)
    assert there(terms).counts
    np.testing.assert_allclose(rows.values, TfidfTransformer(sublinear_tf=True).fit_transform(counts).data, rtol=1e-6)


def test_other_weights_are_brought_to_length_1() -> None:
    weights = counts_of(1)
    weights.data += np.float32(0.5)
    weights.data[weights.indptr[:-2]] = 1e-3 * np.pi  # all others are large multiples of it, and no whole ones
    terms, rows = weighed(weights)
    assert not there(terms).counts
    np.testing.assert_allclose(rows.values, normalize(weights).data, rtol=1e-6)


@pytest.mark.parametrize("numbers", [1.0, 0.37, -1e-4])
def test_numbers_beside_counts_are_brought_down_to_the_largest_term(numbers: float) -> None:
    """As the length of a text beside the counts of its words: no term, and no part of a document's length."""
    counts = counts_of(11)
    lengths = sparse.csr_matrix(numbers * np.random.default_rng(11).integers(200, 9000, (N_ROWS + 1, 1)))
    both: Any = sparse.hstack([lengths, counts]).tocsr().astype(np.float32)
    terms, rows = weighed(both)
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    scale = np.sqrt(expected.multiply(expected).sum(axis=0).max() / lengths.multiply(lengths).sum())
    np.testing.assert_allclose(rows.values, sparse.hstack([scale * lengths, expected]).tocsr().data, rtol=1e-5)
    np.testing.assert_array_equal(there(terms).weighed(rows_of(both), both.indices), rows.values)
    assert "numbers brought down" in there(terms).in_words


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_counts_that_were_divided_by_a_length_are_counts_again(norm: str) -> None:
    """As HashingVectorizer and TfidfVectorizer without idf give them, to the bit."""
    counts = counts_of(8)
    counts.data[counts.indptr[:-2]] = 1  # each document has some word once
    divided, rows = weighed(normalize(counts, norm).astype(np.float32))
    whole, expected = weighed(counts)
    assert there(divided) == replace(there(whole), idf=there(divided).idf, divided=True)
    np.testing.assert_array_equal(there(divided).idf, there(whole).idf)
    np.testing.assert_array_equal(rows.values, expected.values)
    new = normalize(counts_of(9), norm).astype(np.float32)
    found = there(divided).weighed(rows_of(new), new.indices)
    smallest = sparse.diags([1 / row.data.min() if row.nnz else 0.0 for row in new])
    again = rows_of((smallest @ new).astype(np.float32))
    np.testing.assert_allclose(found, there(whole).weighed(again, new.indices), rtol=1e-6)


def test_values_that_were_rounded_to_four_digits_are_counts_again() -> None:
    counts = counts_of(12, 40)
    counts.data[counts.data == 1000] = 1
    counts.data[counts.indptr[:-2]] = 1
    divided = round(normalize(counts), 4)
    _, expected = weighed(counts)
    terms, rows = weighed(divided.astype(np.float32))
    assert there(terms).divided
    np.testing.assert_array_equal(rows.values, expected.values)


def test_whole_numbers_are_counts_as_they_are() -> None:
    """Twos and fours are not ones and twos, and one document that holds no multiples of its smallest value is enough
    to tell other weights from counts."""
    counts = counts_of(10)
    counts.data *= 2
    terms, _ = weighed(counts)
    assert not there(terms).divided
    shares = (0.25 * counts).astype(np.float32)
    shares.data[counts.indptr[7] : counts.indptr[7] + 2] = 1, 1.5
    terms, _ = weighed(shares)
    assert not there(terms).counts


@pytest.mark.parametrize("counts", [True, False])
def test_signs_of_hashing_are_dropped(counts: bool) -> None:
    """Naive Bayes takes no negative values, and a place with one sign tells nothing by it."""
    unsigned = counts_of(5)
    if not counts:
        unsigned.data += np.random.default_rng(5).random(len(unsigned.data))
        unsigned = normalize(unsigned).astype(np.float32).tocsr()
    signs = sparse.diags(np.random.default_rng(5).choice([-1.0, 1.0], N_FEATURES))
    hashed = sparse.csr_matrix(unsigned @ signs).astype(np.float32)
    hashed.data[0] *= -1  # two terms share a place
    terms, rows = weighed(hashed)
    assert there(terms).signed
    assert there(terms).counts == counts
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(unsigned) if counts else unsigned
    np.testing.assert_allclose(rows.values, expected.data, rtol=1e-6)


def test_where_many_terms_share_a_place_weights_keep_the_signs_of_counts() -> None:
    counts = counts_of(6)
    signs = np.random.default_rng(6).choice([-1, 1], len(counts.data))
    mixed = counts.copy()
    mixed.data *= signs
    terms, rows = weighed(mixed)
    assert there(terms).counts
    assert not there(terms).signed
    expected = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
    np.testing.assert_allclose(rows.values, expected.data * signs, rtol=1e-6)


def test_negative_values_of_few_features_are_no_counts() -> None:
    some = counts_of(6)
    some.data[some.indices < N_FEATURES // 10] *= -1
    terms, rows = weighed(some)
    assert not there(terms).signed
    assert not there(terms).counts
    np.testing.assert_allclose(rows.values, normalize(some).data, rtol=1e-6)


def test_features_that_training_did_not_see_do_not_shorten_the_others() -> None:
    terms, rows = weighed(counts_of(2))
    one = rows_of(counts_of(2)).between(0, 1)
    columns = one.columns(0, one.n_nonzeros)
    more = SparseRows(
        np.array([0, one.n_nonzeros + 1]),
        np.append(columns, N_FEATURES).astype(np.uint32),
        np.append(one.values[: one.n_nonzeros], 7).astype(np.float32),
        N_FEATURES + 1,
    )
    found = there(terms).weighed(more, more.indices)
    assert np.array_equal(found, np.append(rows.values[: one.n_nonzeros], 0))


def test_rows_are_left_as_they_are_that_are_no_bags_of_terms() -> None:
    rng = np.random.default_rng(3)
    equally_long = counts_of(3)
    equally_long.data += rng.random(len(equally_long.data))
    equally_long = normalize(equally_long).astype(np.float32).tocsr()
    dense = sparse.csr_matrix(rng.integers(1, 9, (30, 20)).astype(np.float32))
    # the brightness of pixels, a fifth of which are not dark
    pixels = sparse.csr_matrix(rng.integers(1, 256, (60, 50)) * (rng.random((60, 50)) < 0.2)).astype(np.float32)
    # ages beside columns of 0 and 1, as many ones in each row
    ages = rng.integers(17, 90, (N_ROWS, 1)).astype(np.float32)
    ones = np.zeros((N_ROWS, N_FEATURES), np.float32)
    ones[np.arange(N_ROWS)[:, None], rng.integers(0, 40, (N_ROWS, 5)) + 40 * np.arange(5)] = 1
    outweighed: Any = sparse.csr_matrix(np.hstack([ages, ones]))
    for matrix in (equally_long, dense, pixels, outweighed, sparse.csr_matrix(np.zeros((3, 4), np.float32))):
        terms, rows = weighed(matrix)
        assert terms is None
        assert np.array_equal(rows.values, matrix.data.astype(np.float32))


def test_a_number_beyond_float32_is_its_largest() -> None:
    rows = SparseRows(np.array([0, 1]), np.zeros(1, np.uint32), np.array([1e38], np.float32), 1)
    weights = TermWeights(np.array([-1e3]), counts=True).weighed(rows, np.zeros(1, np.int64))
    assert weights.tolist() == [np.finfo(np.float32).max]
