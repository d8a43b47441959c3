"""Prediction: decode the documents of a body, load the model, score, answer.

The numbers of an answer are written as JSON batch after batch: as text they take less memory than as objects, and none
is encoded at once."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec
import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from starlette.responses import Response

from app.codecs.base import Bounds, Reserve, check_limit
from app.codecs.dispatch import body_decoder, is_compressed
from app.codecs.transport.encodings import reserve_nothing
from app.errors import InvalidRequest
from app.http.answers import json_answer
from app.http.requests import RESERVATION, in_steps, in_thread, last_of, read_blocks, read_json
from app.predictions.schemas import LabelBody
from app.predictions.scoring import UnseenCounter, identify_fault, score_posted
from app.services import version_cache
from app.services.wiring import Services
from core.documents.kinds import PartRows, TextRows, checked, parts_of
from core.errors import MAX_FAULTS, Fault, InvalidDocuments, refuse
from core.models.model import Model
from storage.records import Label, Version
from storage.repositories.datasets import Batch

_ENCODER = msgspec.json.Encoder()
_ROW_WORK, _COLUMN_WORK = 1000, 100
"""Cost of answering for a document, and for each class of it, in multiplications."""
_EVENT_LOOP_WORK = 4_000_000
"""Multiplications that may be done on the event loop: some milliseconds."""
_NUMBERS = 1 << 16
"""Numbers that are encoded at a time, which holds the interpreter for some milliseconds."""


class AnswerTexts:
    """Labels, scores and probabilities of documents as JSON texts.

    ``flat`` numbers are one array, others an array of a row a document; ``echo`` says whether the texts of the
    documents stand beside.
    """

    def __init__(
        self, model: Model, labels: Iterable[Label], reserve: Reserve, *, flat: bool = False, echo: bool = False
    ) -> None:
        self._model = model
        self._labels = np.array(list(labels), object)
        self._reserve = reserve
        self._flat = flat
        self._echo = echo
        self._texts: dict[str, list[bytes]] = {"ids": [], "texts": [], "labels": [], "scores": [], "probabilities": []}
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
                scores = scored.scores[start : start + most]
                self.n_rows += len(scores)
                probabilities = self._model.probabilities(scores)
                self._write("labels", _encoded(self._labels_of(scores, probabilities)))
                self._write_rows("scores", scores)
                if probabilities is not None:
                    self._write_rows("probabilities", probabilities)
                yield

    def has(self, name: str) -> bool:
        """Whether there are ids, as soon as one document has one, or texts, if they are wanted."""
        return bool(self._texts[name])

    def array(self, name: str) -> Iterator[bytes]:
        """Parts of the JSON array of ids, texts, labels, scores or probabilities; null if there are none."""
        texts = self._texts[name]
        if not texts:
            yield b"null"
            return
        for index, text in enumerate(texts):
            yield b"," if index else b"["
            yield text
        yield b"]"

    def _named(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """The batches, after their ids were written, as soon as one document has an id."""
        position = 0
        for batch in batches:
            if self.has("ids") or (batch.ids and any(id is not None for id in batch.ids)):
                start = position if self.has("ids") else 0
                given = [None] * (position - start) + list(batch.ids or [None] * batch.rows.n_rows)
                for at in range(0, len(given), _NUMBERS):
                    part = given[at : at + _NUMBERS]
                    ids = [str(start + at + place) if id is None else id for place, id in enumerate(part)]
                    self._write("ids", _encoded(ids))
            if self._echo:
                texts = parts_of(batch.rows).get("text", [None] * batch.rows.n_rows)
                # of several parts one that a document lacks is empty
                lacking = isinstance(batch.rows, PartRows)
                self._write("texts", _encoded([text or None for text in texts] if lacking else [*texts]))
            position += batch.rows.n_rows
            yield batch

    def _labels_of(self, scores: NDArray[np.float64], probabilities: NDArray[np.float64] | None) -> list[Any]:
        """The label of each row or, by a model of several, all labels; in flat answers 1 for each label that a row is
        given, else 0.
        """
        model = self._model
        if model.nested and probabilities is not None:
            return [label for label, _ in model.tree.told(probabilities)]
        if not model.several:
            return cast(list[Label], self._labels[model.labels_of(scores, probabilities)].tolist())
        assert probabilities is not None
        if self._flat:
            return model.given_labels(probabilities).astype(np.int64).ravel().tolist()
        return model.label_sets(probabilities)

    def _write_rows(self, name: str, rows: NDArray[np.float64]) -> None:
        if self._flat:
            self._write(name, _encoded(rows.ravel().tolist()))
        elif rows.shape[1] > 1:
            self._write(name, _encoded(rows.tolist()))
        else:
            # a row has one number: the lists of rows, which take longer than the prediction, are not made
            self._write(name, b"[" + _encoded(rows[:, 0].tolist()).replace(b",", b"],[") + b"]")

    def _write(self, name: str, text: bytes) -> None:
        self._reserve(len(text))
        self._texts[name].append(text)


async def label(request: Request, services: Services, reference: str) -> Response:
    """The label of the text in the body, by the version to which ``reference`` refers now."""
    body = await read_json(request, services, LabelBody)
    loaded = await load_model(services, reference)
    if fits_event_loop(loaded.model, 1) and len(body.text) < services.settings.large_request_bytes:
        return loaded.marked(_labeled(loaded.model, body.text))
    return loaded.marked(await in_thread(services.pools.predicting(loaded.model), _labeled, loaded.model, body.text))


def _labeled(model: Model, text: str) -> Response:
    (scored,) = score_posted(model, [Batch(TextRows.of([text]), [None])])
    probabilities = model.probabilities(scored.scores)
    if model.several:
        assert probabilities is not None
        (labels,), (likely,) = model.label_sets(probabilities), model.likely_labels(probabilities)
        return json_answer({"labels": labels, "probabilities": likely})
    if model.nested and probabilities is not None:
        ((node, path),) = model.tree.told(probabilities)
        return json_answer({"label": node, "probability": path[node], "path": path})
    class_index = int(model.labels_of(scored.scores, probabilities)[0])
    probability = None if probabilities is None else float(probabilities[0, class_index])
    return json_answer({"label": model.classes[class_index], "probability": probability})


async def predict(request: Request, services: Services, reference: str) -> Response:
    """Labels and scores of the documents in the body, by the version to which ``reference`` refers now.

    A small body is parsed, and scored if that takes little work, on the event loop: a thread would cost more.
    """
    bounds = services.settings.prediction_bounds
    blocks = await read_blocks(request, bounds)
    loaded = await load_model(services, reference)
    reserve: Reserve = request.scope[RESERVATION].grow
    query = request.query_params if request.scope["query_string"] else {}
    if query.get("include", "text") != "text":
        raise InvalidRequest("include", f"{query['include'][:64]!r} is not text, the one thing that can stand beside")
    batches: Iterable[Batch] = decode_documents(blocks, request.headers, bounds, reserve, query)
    texts = AnswerTexts(loaded.model, loaded.version.classes, reserve, echo=query.get("include") == "text")
    if sum(map(len, blocks)) < services.settings.large_request_bytes and not is_compressed(request.headers):
        batches = list(batches)
        if fits_event_loop(loaded.model, sum(batch.rows.n_rows for batch in batches)):
            return last_of(_answer(loaded, texts, texts.add_each(batches)))
    steps = _answer(loaded, texts, texts.add_each(batches))
    return last_of(await in_steps(request, services.pools.predicting(loaded.model), steps))


def fits_event_loop(model: Model, n_rows: int) -> bool:
    """Whether scoring so many documents takes only some milliseconds, so that it may be done on the event loop."""
    return (
        not model.vocabulary.encodes
        and n_rows * (_ROW_WORK + _COLUMN_WORK * len(model.classes) + model.row_work) <= _EVENT_LOOP_WORK
    )


class Loaded(NamedTuple):
    """A version and its model."""

    version: Version
    model: Model
    age: float | None = None
    """Seconds since the store named this version, if it does not answer now."""

    @property
    def warnings(self) -> list[str]:
        """Warnings about a version that may have been replaced."""
        if self.age is None:
            return []
        return [
            f"the store does not answer: version {self.version.number} is the one that was last known, "
            f"{self.age:.0f} s ago"
        ]

    def marked(self, response: Response) -> Response:
        """The answer with the header Age, where the version is only the last known one."""
        if self.age is not None:
            response.headers["Age"] = f"{self.age:.0f}"
        return response


async def load_model(services: Services, reference: str) -> Loaded:
    """The version to which a reference refers now, or as last known, and its model; raises NotFound,
    StoreUnavailable."""
    resolved, cache = await services.version_cache.resolve(reference), services.model_cache
    model = cache.find(resolved.version)
    if model is None:
        loading = asyncio.create_task(in_thread(services.pools.load, cache.load, resolved.version))
        try:
            while not (await asyncio.wait([loading], timeout=version_cache.ANSWER_SECONDS))[0]:
                # a large model is waited for while the store answers
                await services.version_cache.ask(reference, version_cache.ANSWER_SECONDS)
            model = loading.result()
        finally:
            loading.cancel()
    return Loaded(resolved.version, model, resolved.age)


def _answer(loaded: Loaded, texts: AnswerTexts, steps: Iterator[None]) -> Iterator[Response | None]:
    """None after each step but the last, then the response."""
    version = loaded.version
    yield from steps
    parts = [_ENCODER.encode({"model": version.name, "version": version.number, "classes": version.classes})[:-1]]
    for name in (*filter(texts.has, ("ids", "texts")), "labels", "scores", "probabilities"):
        parts += [f',"{name}":'.encode(), *texts.array(name)]
    parts += [b',"warnings":', _ENCODER.encode([*loaded.warnings, *texts.unseen.warnings()]), b"}"]
    yield loaded.marked(Response(b"".join(parts), media_type="application/json"))


def decode_documents(
    blocks: Iterable[bytes],
    headers: Mapping[str, str],
    bounds: Bounds,
    reserve: Reserve = reserve_nothing,
    query: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Batch]:
    """The documents of a body, whose bytes were counted as they came, as batches of checked rows.

    Raises InvalidDocuments, LimitExceeded, TooManyRequests, UnsupportedMediaType.
    """
    body = body_decoder(headers, bounds, reserve=reserve, query=query)
    position = 0
    for batch in body.read(blocks):
        if not batch.rows.n_rows:
            continue
        rows, faults = checked(batch.rows, MAX_FAULTS)
        refuse(identify_fault(fault, batch, position) for fault in faults)
        position += rows.n_rows
        check_limit(position, "documents", bounds.documents)
        yield batch._replace(rows=rows)
    if not position:
        raise InvalidDocuments("there is no document", [Fault("", "documents", "there is none")])


def _encoded(values: list[Any]) -> bytes:
    """The elements as JSON, without the brackets around them."""
    return _ENCODER.encode(values)[1:-1]
