"""Documents, posted or stored, scored by a model batch after batch: the one place where documents become rows of a model.

Memory is that of a batch, however many documents there are; whoever calls does so off the event loop unless it is known to be little work.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from fastapi import Request
from numpy.typing import NDArray

from app.codecs.documents import invalid_documents
from app.errors import InvalidRequest
from app.http.disconnect import raise_if_disconnected, run_until_disconnect
from app.services import Services
from core.documents.kinds import Kind, Rows, kind_of, spans
from core.documents.rows import SparseRows
from core.documents.vocabulary import kind_detail
from core.errors import Fault, InvalidDocuments
from core.models.model import Model
from workers.contract import Label
from workers.repositories.datasets import Batch, Documents

T = TypeVar("T")
_BATCH_ROWS = 1 << 13
_BATCH_NONZEROS = 1 << 19
"""or bytes of text"""
_BATCH_SCORES = 1 << 20
"""numbers, held once or twice each"""


class Scored(NamedTuple):
    """Documents that came one after another, with their scores."""

    positions: NDArray[np.int64]
    """shape (n_rows,), ascending: where they stand in their dataset or body"""
    labels: Sequence[Label | None]
    """shape (n_rows,): as they were given, None where unlabeled"""
    rows: SparseRows
    """as the model takes them"""
    scores: NDArray[np.float64]
    """shape (n_rows, n_columns), as the model has them"""
    kind: Kind
    unseen: int
    """how many values are of features that the model never saw; of text, words"""
    n_values: int
    """how many there are"""


class Unseen:
    """Counts what a model never saw of the documents it scores."""

    def __init__(self) -> None:
        self._unseen = self._all = self._empty = self._documents = 0
        self._what = _WHAT["vectors"]

    def count(self, scored: Scored) -> None:
        """Take note of a batch."""
        self._unseen += scored.unseen
        self._all += scored.n_values
        self._empty += int(np.count_nonzero(np.diff(scored.rows.indptr) == 0))
        self._documents += scored.rows.n_rows
        self._what = _WHAT[scored.kind]

    def warnings(self) -> list[str]:
        """What is to be said of it."""
        unseen = [f"{self._unseen} of {self._all} {self._what}; they count as zero"] if self._unseen else []
        return [*unseen, f"{self._empty} of {self._documents} {_EMPTY}"] if self._empty else unseen


_EMPTY = "documents have nothing that the model knows, so their answers tell nothing of them"
_WHAT: dict[Kind, str] = {
    "vectors": "values are of features that the model never saw",
    "features": "values are of features that the model never saw",
    "text": "words are in none of the terms of the model",
}


async def apart(request: Request, services: Services, function: Callable[..., T], *arguments: Any) -> T:
    """Call a function that scores a dataset, where no prediction has to wait for its end, and as long as the caller waits for it.

    Raises TooManyRequests, and ClientDisconnect when the caller has gone.
    """
    with services.scoring_limit.reserve(1):
        return await run_until_disconnect(request, services.score_pool, function, *arguments)


def score_posted(model: Model, batches: Iterable[Batch]) -> Iterator[Scored]:
    """All documents of a body, given as batches of checked rows: each is scored as it comes, so that no copy is made of the whole.

    Raises InvalidDocuments if the model cannot score one, or takes documents of another kind.
    """
    start = 0
    for batch in batches:
        positions = np.arange(start, start + batch.rows.n_rows)
        try:
            scored = _scored(model, batch.rows, positions, batch.labels)
        except InvalidDocuments as error:
            raise invalid_documents([named(fault, batch, start) for fault in error.faults]) from None
        yield scored
        start += batch.rows.n_rows


def batches_of(model: Model, rows: Rows) -> Iterator[Batch]:
    """Documents without labels or ids that came as one, in parts that are little memory to score."""
    for chosen in _spans(rows, None, model):
        yield Batch(_taken(rows, chosen), [None] * len(chosen))


def score_stored(model: Model, documents: Documents, positions: NDArray[np.int64] | None = None) -> Iterator[Scored]:
    """Documents of a dataset: all, or those at ascending ``positions`` of shape (n_chosen,).

    Raises InvalidRequest for those of another kind, InvalidDocuments if the model cannot score one.
    """
    check_kind(model, documents)
    labels = np.array([*documents.classes, None], object)
    for chosen in _spans(documents.rows, positions, model):
        try:
            scored = _scored(model, _taken(documents.rows, chosen), chosen, labels[documents.class_indices[chosen]].tolist())
        except InvalidDocuments as error:
            ids = documents.ids.at(chosen[[int(fault.document) for fault in error.faults]].tolist())
            raise invalid_documents([fault._replace(document=id) for fault, id in zip(error.faults, ids, strict=True)]) from None
        yield scored


def check_kind(model: Model, documents: Documents) -> None:
    """Raises InvalidRequest if a dataset is of another kind than a model takes."""
    kind = kind_of(documents.rows)
    if kind != model.vocabulary.kind:
        raise InvalidRequest("dataset", kind_detail(model.vocabulary.kind, kind))


def rows_at(model: Model, documents: Documents, positions: NDArray[np.int64]) -> SparseRows:
    """The rows of few documents of a dataset, those at ascending ``positions``, as the model takes them."""
    return model.vocabulary.read(_taken(documents.rows, positions)).rows


def _taken(rows: Rows, positions: NDArray[np.int64]) -> Rows:
    if len(positions) and int(positions[-1] - positions[0]) + 1 == len(positions):
        return rows.between(int(positions[0]), int(positions[-1]) + 1)
    return rows.taken(positions)


def _scored(model: Model, rows: Rows, positions: NDArray[np.int64], labels: Sequence[Label | None]) -> Scored:
    raise_if_disconnected()
    read = model.vocabulary.read(rows)
    scores, unseen = model.scores_and_unseen(read.rows)
    return Scored(positions, labels, read.rows, scores, model.vocabulary.kind, read.unknown + unseen, read.n_values)


def _spans(rows: Rows, positions: NDArray[np.int64] | None, model: Model) -> Iterator[NDArray[np.int64]]:
    """Consecutive parts of ``positions`` whose rows and scores are little memory; a single row may be as long as it likes."""
    most = max(1, min(_BATCH_ROWS, _BATCH_SCORES // model.n_columns))
    n_chosen = rows.n_rows if positions is None else len(positions)
    for block in range(0, n_chosen, most):
        end = min(block + most, n_chosen)
        chosen = np.arange(block, end) if positions is None else positions[block:end]
        ends = np.concatenate([[0], np.cumsum(rows.indptr[chosen + 1] - rows.indptr[chosen])])
        for start, stop in spans(ends, most, _BATCH_NONZEROS):
            yield chosen[start:stop]


def named(fault: Fault, batch: Batch, position: int) -> Fault:
    """The fault with the document's id, if it was given one, else with its position in the body."""
    if not fault.document:
        return fault
    place = int(fault.document)
    id = batch.ids[place] if batch.ids else None
    return fault._replace(document=id or str(position + place))
