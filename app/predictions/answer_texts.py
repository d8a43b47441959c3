"""The numbers of a prediction as JSON, written batch after batch: as text they take less memory than as objects, and
none is encoded at once.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.codecs.base import Reserve
from app.predictions.scoring import UnseenCounter, score_posted
from core.models.model import Model
from storage.records import Label
from storage.repositories.datasets import Batch

_NUMBERS = 1 << 16
"""Numbers that are encoded at a time, which holds the interpreter for some milliseconds."""
_ENCODER = msgspec.json.Encoder()


class AnswerTexts:
    """Labels, scores and probabilities of documents as JSON texts.

    ``flat`` numbers are one array, others an array of a row a document.
    """

    def __init__(self, model: Model, labels: Iterable[Label], reserve: Reserve, *, flat: bool = False) -> None:
        self._model = model
        self._labels = np.array(list(labels), object)
        self._reserve = reserve
        self._flat = flat
        self._texts: dict[str, list[bytes]] = {"ids": [], "labels": [], "scores": [], "probabilities": []}
        self.n_rows = 0
        self.unseen = UnseenCounter()

    def add_each(self, batches: Iterable[Batch]) -> Iterator[None]:
        """Score and add the documents of a body, some in each step.

        Raises InvalidDocuments, LimitExceeded, TooManyRequests.
        """
        most = max(1, _NUMBERS // max(self._model.n_columns, len(self._model.classes)))
        for scored in score_posted(self._model, self._named(batches)):
            self.unseen.count(scored)
            for start in range(0, len(scored.scores), most):
                self._add(scored.scores[start : start + most])
                yield

    @property
    def has_ids(self) -> bool:
        """Whether a document has an id."""
        return bool(self._texts["ids"])

    def array(self, name: str) -> Iterator[bytes]:
        """Parts of the JSON array of ids, labels, scores or probabilities; null if there are none."""
        texts = self._texts[name]
        if not texts:
            yield b"null"
            return
        for index, text in enumerate(texts):
            yield b"," if index else b"["
            yield text
        yield b"]"

    def _named(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches, after their ids were written: from the first document that has one, and of those before then,
        too.
        """
        position = 0
        for batch in batches:
            stop = position + batch.rows.n_rows
            if self.has_ids or (batch.ids and any(id is not None for id in batch.ids)):
                start = position if self.has_ids else 0
                given = [None] * (position - start) + list(batch.ids or [None] * batch.rows.n_rows)
                for at in range(0, len(given), _NUMBERS):
                    part = given[at : at + _NUMBERS]
                    self._write("ids", [str(start + at + place) if id is None else id for place, id in enumerate(part)])
            position = stop
            yield batch

    def _add(self, scores: NDArray[np.float64]) -> None:
        self.n_rows += len(scores)
        probabilities = self._model.probabilities(scores)
        self._write("labels", self._labels.take(self._model.labels_of(scores, probabilities)).tolist())
        self._write_rows("scores", scores)
        if probabilities is not None:
            self._write_rows("probabilities", probabilities)

    def _write_rows(self, name: str, rows: NDArray[np.float64]) -> None:
        if self._flat:
            self._write(name, rows.ravel().tolist())
        elif rows.shape[1] > 1:
            self._write(name, rows.tolist())
        else:
            # a row has one number: the lists of rows, which take longer than the prediction, are not made
            self._append(name, b"[" + _encoded(rows[:, 0].tolist()).replace(b",", b"],[") + b"]")

    def _write(self, name: str, values: list[Any]) -> None:
        self._append(name, _encoded(values))

    def _append(self, name: str, text: bytes) -> None:
        self._reserve(len(text))
        self._texts[name].append(text)


def _encoded(values: list[Any]) -> bytes:
    """The elements as JSON, without the brackets around them."""
    return _ENCODER.encode(values)[1:-1]
