"""Columns of documents of several parts: blocks side by side, of rows of length 1."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from core.documents.kinds import NamedRows, PartRows, RowsOfKind, TextRows, checked, kind_of, row_digests, shape_fault
from core.documents.part_columns import Block, PartColumns, centre_of, side_by_side, unit_of
from core.documents.rows import SparseRows, to_dense
from core.documents.text.tfidf import class_names
from core.documents.text.tfidf_fit import fit_terms
from core.documents.vocabulary import NUMBERS, Names
from core.errors import InvalidDocuments
from core.models.explanation import explain_score
from core.models.io import read_model
from core.models.model import LinearModel
from core.options.text import TextOptions
from tests.core.problems import rows_of
from tests.there import there

TEXTS = ["goal match", "vote senate vote", "", "goal vote"]
VECTORS = np.array([[3, 4, 0], [0, 0, 2], [1, 1, 1], [0, 0, 0]], np.float32)


def matrix_of(rows: SparseRows) -> NDArray[np.float32]:
    return to_dense(rows, rows.indices[rows.indptr[0] : rows.indptr[-1]])


def named(names: list[str]) -> NamedRows:
    return NamedRows(rows_of(np.array([[1, 1], [0, 5], [0, 0], [2, 0]], np.float32)), names)


def documents(**given: RowsOfKind) -> PartRows:
    return PartRows({"text": TextRows.of(TEXTS), "vector": rows_of(VECTORS), **given})


def columns(min_documents: int = 1) -> PartColumns:
    terms = fit_terms(TextRows.of(TEXTS), TextOptions(min_documents=min_documents, ngrams=1), lambda done, held: None)
    return PartColumns([Block("text", terms, len(terms.keys)), Block("vector", NUMBERS, 3)])


def test_blocks_lie_side_by_side_with_rows_of_length_one() -> None:
    found = columns().read(documents())
    text, vector = np.hsplit(matrix_of(found.rows), [4])
    np.testing.assert_array_equal(text, matrix_of(columns().blocks[0].vocabulary.read(TextRows.of(TEXTS)).rows))
    lengths = np.linalg.norm(VECTORS, axis=1, keepdims=True)
    np.testing.assert_allclose(
        vector, np.divide(VECTORS, lengths, where=lengths > 0, out=np.zeros_like(VECTORS)), rtol=1e-6
    )
    assert found.missing == {"text": 1, "vector": 1}


def test_a_document_without_a_vector_lies_in_the_midst_of_the_others() -> None:
    given = np.array([[3, 4, 0.1], [0.1, 0.1, 2], [0, 0, 0], [1, 2, 2]], np.float32)
    centre = there(centre_of(rows_of(given)))
    lengths = np.linalg.norm(given, axis=1, keepdims=True)
    unit = np.divide(given, lengths, where=lengths > 0, out=np.zeros_like(given))
    np.testing.assert_allclose(centre, unit.sum(axis=0) / 3, rtol=1e-6)
    vocabulary = PartColumns([Block("vector", NUMBERS, 3, centre)])
    found = vocabulary.read(PartRows({"vector": rows_of(given)})).rows
    np.testing.assert_allclose(matrix_of(found), np.where(lengths > 0, unit - centre, 0), atol=1e-6)
    assert np.diff(found.indptr).tolist() == [3, 3, 0, 3]
    model = LinearModel(["a", "b"], 3, np.arange(3, dtype=np.uint32), np.ones((3, 1)), np.zeros(1))
    stored = read_model(*replace(model, vocabulary=vocabulary).to_arrays()).vocabulary
    np.testing.assert_array_equal(matrix_of(stored.read(PartRows({"vector": rows_of(given)})).rows), matrix_of(found))


@pytest.mark.parametrize("factor", [1.0, 1e-30, 1e30])
def test_a_part_of_one_number_keeps_its_size(factor: float) -> None:
    """Length 1 would leave nothing of a price but its sign; a document that lacks it is not counted."""
    prices = np.array([[30], [-40], [0], [50]], np.float32) * np.float32(factor)
    unit = there(unit_of(rows_of(prices)))
    assert unit == pytest.approx(factor * (5000 / 3) ** 0.5)
    vocabulary = PartColumns([Block("features", Names(["price"]), 1, unit=unit)])
    found = vocabulary.read(PartRows({"features": NamedRows(rows_of(prices), ["price"])})).rows
    np.testing.assert_allclose(matrix_of(found), prices / unit, rtol=1e-6)
    model = LinearModel(["a", "b"], 1, np.arange(1, dtype=np.uint32), np.ones((1, 1)), np.zeros(1))
    stored = read_model(*replace(model, vocabulary=vocabulary).to_arrays()).vocabulary
    assert stored == vocabulary
    part = PartRows({"features": NamedRows(rows_of(prices), ["price"])}).between(1, 4)
    np.testing.assert_allclose(matrix_of(vocabulary.read(part).rows), prices[1:] / unit, rtol=1e-6)


def test_a_number_that_its_unit_takes_beyond_float32_is_its_largest() -> None:
    """As one that is typed with thirty zeros too many; infinite scores would have no probabilities."""
    given = rows_of(np.array([[1e38], [-1]], np.float32))
    found = PartColumns([Block("vector", NUMBERS, 1, unit=1e-6)]).read(PartRows({"vector": given})).rows
    assert found.values.tolist() == [np.finfo(np.float32).max, -1e6]


def test_a_part_of_several_numbers_or_of_none_has_no_unit() -> None:
    assert unit_of(rows_of(VECTORS)) is None
    assert unit_of(SparseRows.empty(4, 1)) is None
    assert centre_of(rows_of(np.ones((4, 1), np.float32))) is None


def test_vectors_with_many_zeros_stay_as_sparse_as_they_are() -> None:
    assert centre_of(rows_of(VECTORS)) is None
    assert centre_of(SparseRows.empty(4, 3)) is None


def test_names_of_classes_are_terms_of_the_text_part() -> None:
    place = columns().names.index("text")
    found = class_names(["vote_goal", "budget", 7], columns())
    assert found is not None
    assert (found.indptr.tolist(), columns().places_of(found.indices).tolist()) == ([0, 2, 2, 2], [place] * 2)
    assert sorted(columns().named(found.indices.astype(np.int64))) == ["goal", "vote"]
    assert class_names(["vote"], NUMBERS) is None


def test_a_part_of_some_rows_is_read_as_in_all() -> None:
    whole, part = columns().read(documents()).rows, columns().read(documents().between(1, 3)).rows
    np.testing.assert_array_equal(matrix_of(part), matrix_of(whole)[1:3])
    taken = columns().read(documents().taken(np.array([3, 0]))).rows
    np.testing.assert_array_equal(matrix_of(taken), matrix_of(whole)[[3, 0]])


def test_documents_of_one_part_lack_the_others() -> None:
    found = columns().read(TextRows.of(TEXTS))
    assert found.missing == {"text": 1, "vector": 4}
    assert not matrix_of(found.rows)[:, 4:].any()


def test_huge_and_tiny_numbers_become_directions() -> None:
    vectors = np.array([[3e38, 4e-38, 0], [3e-38, 4e-38, 0]], np.float32)
    rows = columns().read(PartRows({"vector": rows_of(vectors)})).rows
    np.testing.assert_allclose(np.linalg.norm(matrix_of(rows), axis=1), 1.0, rtol=1e-6)


def test_strange_parts_and_lengths_are_refused() -> None:
    with pytest.raises(InvalidDocuments, match="was trained on text and vector and knows no features"):
        columns().read(documents(features=named(["a", "b"])))
    with pytest.raises(InvalidDocuments, match="vector has 2 numbers, where the model takes 3") as caught:
        columns().read(documents(vector=rows_of(VECTORS[:, :2])))
    assert [fault.document for fault in caught.value.faults] == [0, 2]


def test_names_of_columns() -> None:
    assert columns().named(np.arange(7)) == ["goal", "match", "senate", "vote", "vector[0]", "vector[1]", "vector[2]"]
    assert columns().places_of(np.arange(7)).tolist() == [0, 0, 0, 0, 1, 1, 1]


def test_columns_of_another_vocabulary() -> None:
    """Known terms and the same numbers have the same columns; unknown terms get numbers beyond."""
    here = columns(min_documents=2)
    assert here.columns_of(columns()).tolist() == [0, 6, 7, 1, 2, 3, 4]
    other = PartColumns([Block("features", Names(["a"]), 1), Block("vector", NUMBERS, 3)])
    assert here.columns_of(other).tolist() == [5, 2, 3, 4]
    longer = PartColumns([Block("vector", NUMBERS, 4)])
    assert here.columns_of(longer).tolist() == [5, 6, 7, 8], "vectors of another length are of another encoder"


def test_a_model_of_parts_is_stored_and_explained_by_part() -> None:
    vocabulary = columns()
    weights = np.arange(1.0, 8.0)[:, None]
    model = LinearModel(["a", "b"], 7, np.arange(7, dtype=np.uint32), weights, np.array([0.5]))
    stored = read_model(*replace(model, vocabulary=vocabulary).to_arrays())
    rows = stored.vocabulary.read(documents()).rows
    np.testing.assert_array_equal(matrix_of(rows), matrix_of(vocabulary.read(documents()).rows))
    found = explain_score(stored, rows.between(0, 1), 0, 1)
    assert found.parts is not None
    assert found.score == pytest.approx(stored.scores(rows)[0, 0])
    assert found.parts["vector"] == pytest.approx(5 * 0.6 + 6 * 0.8)
    assert found.score == pytest.approx(0.5 + sum(found.parts.values()))
    assert stored.facts()["parts"] == "text, vector"


def test_digests_tell_documents_by_their_parts() -> None:
    def digests(rows: PartRows) -> list[bytes]:
        return list(row_digests(rows, np.arange(4)))

    same = digests(documents())
    assert digests(PartRows({name: documents().parts[name] for name in ("vector", "text")})) == same
    other = digests(documents(vector=rows_of(VECTORS[:, [1, 0, 2]])))
    assert [one == two for one, two in zip(same, other, strict=True)] == [False, True, True, True]
    assert list(row_digests(PartRows({"text": TextRows.of(TEXTS)}), np.arange(4))) == list(
        row_digests(TextRows.of(TEXTS), np.arange(4))
    )


def test_faults_name_the_part() -> None:
    odd = rows_of(VECTORS)
    odd.values[2] = np.inf
    rows, faults = checked(documents(vector=odd))
    assert (kind_of(rows), [(fault.document, fault.field) for fault in faults]) == ("parts", [(1, "vector")])
    wrong = there(shape_fault(documents(vector=rows_of(VECTORS[:2]))))
    assert wrong.detail == "have different numbers of documents: 2 and 4"


def test_one_block_is_itself() -> None:
    rows = rows_of(VECTORS)
    np.testing.assert_array_equal(matrix_of(side_by_side([rows.between(1, 4)])), VECTORS[1:])
