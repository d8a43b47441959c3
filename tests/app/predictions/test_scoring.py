"""Scoring in batches gives the same as scoring at once."""

from pathlib import Path

import numpy as np
import pytest

from app.predictions import scoring
from app.predictions.scoring import ScoredBatch, UnseenCounter, rows_at, score_posted, score_stored
from core.documents.rows import SparseRows
from core.errors import InvalidDocuments
from core.kernels.function import Kernel
from core.models.kernel import KernelModel
from core.models.model import LinearModel
from storage.records import Label
from storage.repositories.datasets import Batch, Datasets, Documents
from storage.store import open_store
from tests.app.predictions.scored import N_ROWS, model_of, rows_of

LABELS: list[Label | None] = ["a", None, "c"]


def labels_of(rows: SparseRows) -> list[Label | None]:
    return [LABELS[place % 3] for place in range(rows.n_rows)]


@pytest.fixture
def documents(tmp_path: Path) -> Documents:
    datasets = Datasets(open_store(f"file://{tmp_path}"))
    with datasets.builder() as builder:
        builder.add(Batch(rows_of(), labels_of(rows_of())))
        return datasets.open(builder.seal().id)


@pytest.fixture(params=[(1 << 13, 1 << 19), (7, 1 << 19), (1 << 13, 9), (7, 9)], ids=str)
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of a batch: of rows, of nonzeros."""
    monkeypatch.setattr(scoring, "_BATCH_ROWS", request.param[0])
    monkeypatch.setattr(scoring, "_BATCH_NONZEROS", request.param[1])


def check(batches: list[ScoredBatch], model: LinearModel, chosen: np.ndarray) -> None:
    expected, unseen = model.scores_and_unseen(rows_of().taken(chosen))
    np.testing.assert_array_equal(np.concatenate([batch.positions for batch in batches]), chosen)
    np.testing.assert_allclose(np.concatenate([batch.scores for batch in batches]), expected, rtol=1e-12, atol=1e-12)
    assert [label for batch in batches for label in batch.labels] == [LABELS[place % 3] for place in chosen.tolist()]
    assert sum(batch.unseen for batch in batches) == unseen > 0
    assert sum(batch.n_values for batch in batches) == rows_of().taken(chosen).n_nonzeros


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("part", [None, slice(None, None, 3), slice(100, 200)], ids=["all", "some", "run"])
def test_stored_documents(documents: Documents, n_classes: int, part: slice | None) -> None:
    model, everything = model_of(n_classes), np.arange(N_ROWS)
    chosen = None if part is None else everything[part]
    batches = list(score_stored(model, documents, chosen))
    check(batches, model, everything if chosen is None else chosen)
    assert max(len(batch.labels) for batch in batches) <= scoring._BATCH_ROWS
    assert all(batch.n_values <= scoring._BATCH_NONZEROS for batch in batches)


def test_a_row_longer_than_a_batch_is_a_batch(documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "_BATCH_NONZEROS", 2)
    batches = list(score_stored(model_of(2), documents))
    check(batches, model_of(2), np.arange(N_ROWS))
    assert all(batch.n_values <= 2 or len(batch.labels) == 1 for batch in batches)


def test_many_classes_make_batches_of_fewer_documents(documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "_BATCH_SCORES", 90)
    batches = list(score_stored(model_of(30), documents))
    check(batches, model_of(30), np.arange(N_ROWS))
    assert {len(batch.labels) for batch in batches} == {3, 2}


def test_posted_documents() -> None:
    rows, model = rows_of(), model_of(3)
    parts = [rows.between(start, min(start + 150, N_ROWS)) for start in range(0, N_ROWS, 150)]
    labels = labels_of(rows)
    batches = [Batch(part, labels[at * 150 : at * 150 + part.n_rows]) for at, part in enumerate(parts)]
    check(list(score_posted(model, batches)), model, np.arange(N_ROWS))


def test_rows_of_a_few(documents: Documents) -> None:
    for chosen in ([], [3], [3, 4, 5], [0, 7, 499]):
        found, expected = (
            rows_at(model_of(2), documents, np.array(chosen, np.int64)),
            rows_of().taken(np.array(chosen, np.int64)),
        )
        first, last = int(found.indptr[0]), int(found.indptr[-1])
        np.testing.assert_array_equal(found.indptr - first, expected.indptr)
        np.testing.assert_array_equal(found.indices[first:last], expected.indices)


def test_unseen_features_are_reported_once() -> None:
    unseen = UnseenCounter()
    assert unseen.warnings() == []
    for strange in (0, 2, 3):
        unseen.count(
            ScoredBatch(np.zeros(1, np.int64), [None], rows_of(1), np.zeros((1, 1)), "vectors", strange, 4, {})
        )
    assert unseen.warnings() == ["5 of 12 values are of features that the model has not seen; they count as zero"]


def power() -> KernelModel:
    """The tenth power of the first feature."""
    support = SparseRows(np.array([0, 1]), np.zeros(1, np.uint32), np.ones(1, np.float32), 1)
    return KernelModel(
        ["a", "b"], 1, np.zeros(1, np.uint32), support, np.ones((1, 1)), np.zeros(1), Kernel("poly", degree=10)
    )


@pytest.mark.parametrize(("ids", "name"), [(None, "2"), (["x", "y", "z", "w"], "z")])
def test_a_stored_document_whose_score_no_number_holds_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: list[str] | None, name: str
) -> None:
    monkeypatch.setattr(scoring, "_BATCH_ROWS", 2)
    rows = SparseRows(np.arange(5), np.zeros(4, np.uint32), np.array([1.0, 1.0, 3e38, 1.0], np.float32), 1)
    datasets = Datasets(open_store(f"file://{tmp_path}"))
    with datasets.builder() as builder:
        builder.add(Batch(rows, [None] * 4, ids))
        documents = datasets.open(builder.seal().id)
    with pytest.raises(InvalidDocuments, match=f"document {name!r}: values: so large"):
        list(score_stored(power(), documents))


@pytest.mark.parametrize(("ids", "name", "words"), [(None, 5, "number 6"), (["x", "y"], "y", "'y'")])
def test_a_document_whose_score_no_number_holds_is_named(ids: list[str] | None, name: str | int, words: str) -> None:
    """By its id, or by its position among all that came, which people count from 1."""
    model = power()
    four = SparseRows(np.arange(5), np.zeros(4, np.uint32), np.ones(4, np.float32), 1)
    two = SparseRows(np.arange(3), np.zeros(2, np.uint32), np.array([1.0, 3e38], np.float32), 1)
    scored = score_posted(model, [Batch(four, [None] * 4), Batch(two, [None] * 2, ids)])
    assert next(scored).scores.tolist() == [[1.0]] * 4
    with pytest.raises(InvalidDocuments, match=f"document {words}: values: so large") as caught:
        next(scored)
    assert [fault.document for fault in caught.value.faults] == [name]
