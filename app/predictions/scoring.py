"""Scoring of posted and of stored documents by a model, batch after batch.

Memory is that of a batch, however many documents there are. Callers score in a thread, unless the work is known to be
little."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from app.errors import InvalidRequest
from app.http.access import caller_of
from app.http.requests import raise_if_disconnected, run_until_disconnect
from app.services.wiring import Services
from core.documents.kinds import Kind, Rows, spans
from core.documents.rows import SparseRows
from core.errors import Fault, InvalidDocuments, invalid_documents
from core.evaluation.active_learning import TopTwo, least_certain, top_two
from core.models.model import Model
from core.one_vs_rest import column_of
from storage.records import Label, Version
from storage.repositories.datasets import Batch, Documents
from workers.encoders.rows import with_kept_vectors

T = TypeVar("T")
_BATCH_ROWS = 1 << 13
_BATCH_NONZEROS = 1 << 19
"""Nonzeros of a batch, or bytes of text."""
_BATCH_SCORES = 1 << 20
"""Scores of a batch; memory holds them once or twice."""


class ScoredBatch(NamedTuple):
    """Consecutive documents with their scores."""

    positions: NDArray[np.int64]
    """Positions in the dataset or body, ascending, of shape (n_rows,)."""
    labels: Sequence[Label | None]
    """Labels that the documents have, None where unlabeled, of length n_rows."""
    rows: SparseRows
    """Rows in the features of the model."""
    scores: NDArray[np.float64]
    """Scores of shape (n_rows, n_columns)."""
    kind: Kind
    unseen: int
    """Number of values of features that the model has not seen; of text, number of such words."""
    n_values: int
    """Number of values, or of words."""
    missing: Mapping[str, int]
    """Of documents of several parts, the number of those that lack each part, where any does."""
    sets: Sequence[Sequence[Label] | None] | None = None
    """All labels of documents that may have several, of length n_rows, None where not all are known; None where each
    has one at most."""


class UnseenCounter:
    """Counts features and words of scored documents that the model has not seen."""

    def __init__(self) -> None:
        self._unseen = self._all = self._empty = self._documents = 0
        self._missing: Counter[str] = Counter()
        self._what = _WHAT["vectors"]

    def count(self, scored: ScoredBatch) -> None:
        """Count a batch."""
        self._unseen += scored.unseen
        self._all += scored.n_values
        ends = scored.rows.indptr
        self._empty += int(np.count_nonzero(ends[1:] == ends[:-1]))
        self._documents += scored.rows.n_rows
        if scored.missing:
            self._missing.update(scored.missing)
        self._what = _WHAT[scored.kind]

    def warnings(self) -> list[str]:
        """Warnings about unseen values and about documents without any known one."""
        unseen = [f"{self._unseen} of {self._all} {self._what}; they count as zero"] if self._unseen else []
        empty = [f"{self._empty} of {self._documents} {_EMPTY}"] if self._empty else []
        missing = [
            f"{count} of {self._documents} documents have no {part}, by which the model goes, too"
            for part, count in self._missing.items()
        ]
        return [*unseen, *missing, *empty]


_EMPTY = "documents have nothing that the model knows, so their answers do not depend on them"
_WHAT: dict[Kind, str] = {
    "vectors": "values are of features that the model has not seen",
    "features": "values are of features that the model has not seen",
    "text": "words are new to the model",
    "parts": "words and values are not known to the model",
}


async def run_scoring(request: Request, services: Services, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that scores a dataset, in threads that predictions do not need; it ends soon after the client
    disconnects.

    Raises TooManyRequests and ClientDisconnect.
    """
    with services.limits.scorings.reserve(caller_of(request.scope), 1):
        return await run_until_disconnect(request, services.pools.score, function, *arguments)


def score_posted(model: Model, batches: Iterable[Batch]) -> Iterator[ScoredBatch]:
    """Score the documents of a body, given as batches of checked rows.

    Raises InvalidDocuments if the model cannot score a document or the documents are of another kind.
    """
    start = 0
    for batch in batches:
        positions = np.arange(start, start + batch.rows.n_rows)
        try:
            scored = _scored(model, batch.rows, positions, batch.labels)
            if batch.label_lists is not None:
                scored = scored._replace(sets=batch.label_lists.applied)
        except InvalidDocuments as error:
            raise invalid_documents([identify_fault(fault, batch, start) for fault in error.faults]) from None
        yield scored
        start += batch.rows.n_rows


def batches_of(model: Model, rows: Rows) -> Iterator[Batch]:
    """The rows as batches that take little memory to score; they have neither labels nor ids."""
    for chosen in _spans(rows, None, model):
        yield Batch(_taken(rows, chosen), [None] * len(chosen))


def score_stored(
    model: Model, documents: Documents, positions: NDArray[np.int64] | None = None, *, encode: bool = False
) -> Iterator[ScoredBatch]:
    """Score all documents of a dataset, or the documents at ascending ``positions`` of shape (n_chosen,).

    A model that reads texts by an encoder takes the vectors that are kept of them, and makes others if told to
    ``encode``. Raises InvalidRequest if they are of another kind, InvalidDocuments if the model cannot score one.
    """
    model = with_kept_vectors(model, documents, others=encode)
    check_kind(model, documents)
    labels = np.array([*documents.classes, None], object)
    for chosen in _spans(documents.rows, positions, model):
        try:
            scored = _scored(
                model, _taken(documents.rows, chosen), chosen, labels[documents.class_indices[chosen]].tolist()
            )
        except InvalidDocuments as error:
            ids = documents.ids.taken(chosen[[int(fault.document) for fault in error.faults]].tolist())
            raise invalid_documents(
                [fault._replace(document=id) for fault, id in zip(error.faults, ids, strict=True)]
            ) from None
        if documents.label_sets is not None:
            given, known = documents.given(chosen), documents.label_sets.complete[chosen].tolist()
            sets = [own if complete else None for own, complete in zip(given, known, strict=True)]
            scored = scored._replace(sets=sets)
        yield scored


def check_kind(model: Model, documents: Documents) -> None:
    """Raises InvalidRequest if the documents of a dataset are not of the kind that the model predicts."""
    try:
        model.vocabulary.read(documents.rows.between(0, 0))
    except InvalidDocuments as error:
        raise InvalidRequest("dataset", error.detail) from None


def rows_at(model: Model, documents: Documents, positions: NDArray[np.int64]) -> SparseRows:
    """The rows of the documents at ascending ``positions`` of a dataset, in the features of the model."""
    return with_kept_vectors(model, documents).vocabulary.read(_taken(documents.rows, positions)).rows


def _taken(rows: Rows, positions: NDArray[np.int64]) -> Rows:
    if len(positions) and int(positions[-1] - positions[0]) + 1 == len(positions):
        return rows.between(int(positions[0]), int(positions[-1]) + 1)
    return rows.taken(positions)


def _scored(model: Model, rows: Rows, positions: NDArray[np.int64], labels: Sequence[Label | None]) -> ScoredBatch:
    raise_if_disconnected()
    read = model.vocabulary.read(rows)
    scores, unseen = model.scores_and_unseen(read.rows)
    return ScoredBatch(
        positions, labels, read.rows, scores, model.vocabulary.kind, read.unknown + unseen, read.n_values, read.missing
    )


def _spans(rows: Rows, positions: NDArray[np.int64] | None, model: Model) -> Iterator[NDArray[np.int64]]:
    """Consecutive spans of ``positions`` of little memory, for rows and scores.

    A single row may be of any length.
    """
    most = max(1, min(_BATCH_ROWS, _BATCH_SCORES // model.n_columns))
    n_chosen = rows.n_rows if positions is None else len(positions)
    for block in range(0, n_chosen, most):
        end = min(block + most, n_chosen)
        chosen = np.arange(block, end) if positions is None else positions[block:end]
        ends = np.concatenate([[0], np.cumsum(rows.indptr[chosen + 1] - rows.indptr[chosen])])
        for start, stop in spans(ends, most, _BATCH_NONZEROS):
            yield chosen[start:stop]


def identify_fault(fault: Fault, batch: Batch, position: int) -> Fault:
    """The fault with the id of its document, or with the position in the body if the document has none."""
    if isinstance(fault.document, str):
        return fault
    id = batch.ids[fault.document] if batch.ids else None
    return fault._replace(document=id or position + fault.document)


class DatasetScores(NamedTuple):
    """Predictions of documents, a number a document each but for ``given``."""

    predicted: NDArray[np.int32]
    """Position of the label in the classes of the model, of several labels that of the likeliest, shape (n,)."""
    probabilities: NDArray[np.float32] | None
    """Probability of that label, shape (n,); None if the model is not calibrated."""
    scores: NDArray[np.float32]
    """Score of that label as answers have it, shape (n,): of two classes that of the second."""
    margins: NDArray[np.float64]
    """Difference of the two likeliest classes, shape (n,): see two_likeliest."""
    rivals: NDArray[np.int32]
    """Likeliest class beside the label, shape (n,)."""
    n_given: NDArray[np.int32]
    """Number of labels that each is given, shape (n,): 1 but by a model of several labels."""
    given: NDArray[np.int32]
    """Positions of these labels in the classes of the model, document after document, the likeliest first."""

    @property
    def owners(self) -> NDArray[np.int64]:
        """The document of each label in ``given``."""
        return np.repeat(np.arange(len(self.n_given)), self.n_given)

    def sets(self, places: Sequence[int]) -> Iterator[list[int]]:
        """The labels that these documents are given."""
        ends = np.cumsum(self.n_given)
        return (self.given[ends[place] - self.n_given[place] : ends[place]].tolist() for place in places)

    @property
    def certainty(self) -> NDArray[np.float32]:
        """Certainty of the predictions, shape (n,): the probability, or the distance of the score from 0."""
        return np.abs(self.scores) if self.probabilities is None else self.probabilities


def two_likeliest(model: Model, scores: NDArray[np.float64], probabilities: NDArray[np.float64] | None) -> TopTwo:
    """Of several labels the two that are least certain; else by probabilities, or by scores if the model is not
    calibrated; ``scores`` have the shape (n_rows, n_columns).
    """
    if model.several:
        assert probabilities is not None
        return least_certain(probabilities)
    return top_two(scores if probabilities is None else probabilities)


def scores_at(model: Model, documents: Documents, positions: NDArray[np.int64] | None) -> DatasetScores:
    """Predictions of the documents at ascending positions, or of all; raises InvalidRequest if they are of another
    kind.
    """
    nothing, none = np.zeros(0, np.float32), np.zeros(0, np.int32)
    found = [DatasetScores(none, nothing, nothing, np.zeros(0), none, none, none)]
    for scored in score_stored(model, documents, positions):
        of_classes = model.probabilities(scored.scores)
        labels = model.labels_of(scored.scores, of_classes)
        everyone = np.arange(len(labels))
        columns = np.array([column_of(label, model.n_columns) for label in range(len(model.classes))])
        likeliest = two_likeliest(model, scored.scores, of_classes)
        n_given, given = np.ones(len(labels), np.int64), labels
        if model.several and of_classes is not None:
            order = np.argsort(-of_classes, axis=1, kind="stable")
            ranked = np.take_along_axis(model.given_labels(of_classes), order, axis=1)
            n_given, given = ranked.sum(axis=1), order[ranked]
        found.append(
            DatasetScores(
                labels.astype(np.int32),
                nothing if of_classes is None else of_classes[everyone, labels].astype(np.float32),
                scored.scores[everyone, columns[labels]].astype(np.float32),
                likeliest.margins,
                np.where(likeliest.first == labels, likeliest.second, likeliest.first).astype(np.int32),
                n_given.astype(np.int32),
                given.astype(np.int32),
            )
        )
    joined = DatasetScores(*map(np.concatenate, zip(*found, strict=True)))
    return joined if model.calibration is not None else joined._replace(probabilities=None)


def scores_of_dataset(
    services: Services,
    version: Version,
    model: Model,
    dataset: str,
    documents: Documents,
    positions: NDArray[np.int64] | None = None,
) -> DatasetScores:
    """Predictions of all documents of a dataset, or of those at ascending positions. Neither versions nor documents
    ever change, so they are kept for the next question.

    Raises InvalidRequest if the documents are of another kind.
    """
    key = (version.name, version.number, version.job, dataset, None if positions is None else positions.tobytes())
    return DatasetScores(*services.score_cache.of(key, lambda: scores_at(model, documents, positions)))
