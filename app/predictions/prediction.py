"""Prediction: decode the documents of a body, load the model, score, answer."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import msgspec
import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from starlette.responses import Response

from app.codecs.base import MAX_FAULTS, Bounds
from app.codecs.content_encoding import Reserve, reserve_nothing
from app.codecs.dispatch import BodyDecoder, body_decoder, is_compressed
from app.codecs.documents import invalid_documents
from app.http.bodies import in_thread, read_blocks
from app.http.route_classes import RESERVATION
from app.predictions.scoring import ScoredBatch, UnseenCounter, identify_fault, score_posted
from app.services import Services
from core.documents.kinds import checked
from core.errors import Fault, InvalidDocuments
from core.models.model import Model
from workers.contract import Version
from workers.errors import LimitExceeded
from workers.repositories.datasets import Batch

_ENCODER = msgspec.json.Encoder()
_ROW_WORK, _COLUMN_WORK = 1000, 100
"""Cost of answering for a document, and for each class of it, in multiplications."""
_EVENT_LOOP_WORK = 4_000_000
"""Multiplications that may be done on the event loop: some milliseconds."""


async def predict(request: Request, services: Services, reference: str) -> Response:
    """Labels and scores of the documents in the body, by the version to which ``reference`` refers now.

    A small body is parsed, and scored if that takes little work, on the event loop: a thread would cost more.
    """
    bounds = services.settings.prediction_bounds
    blocks = await read_blocks(request, bounds)
    version, model = await load_model(services, reference)
    batches: Iterable[Batch] = decode_documents(blocks, request.headers, bounds, request.scope[RESERVATION].grow, request.query_params)
    if sum(map(len, blocks)) < services.settings.large_request_bytes and not is_compressed(request.headers):
        batches = list(batches)
        if fits_event_loop(model, sum(batch.rows.n_rows for batch in batches)):
            return _answer(version, model, batches)
    return await in_thread(services.predict_pool, _answer, version, model, batches)


def fits_event_loop(model: Model, n_rows: int) -> bool:
    """Whether scoring so many documents takes only some milliseconds, so that it may be done on the event loop."""
    return n_rows * (_ROW_WORK + _COLUMN_WORK * len(model.classes) + model.row_work) <= _EVENT_LOOP_WORK


async def load_model(services: Services, reference: str) -> tuple[Version, Model]:
    """The version to which a reference refers now, and its model; raises NotFound."""
    cache = services.model_cache
    version = cache.resolve(reference) if cache.resolves_fast else await in_thread(services.predict_pool, cache.resolve, reference)
    model = cache.find(version)
    if model is None:
        model = await in_thread(services.predict_pool, cache.load, version)
    return version, model


def _answer(version: Version, model: Model, batches: Iterable[Batch]) -> Response:
    scores, warnings = collect_scores(score_posted(model, batches))
    probabilities = model.probabilities(scores)
    content = {
        "model": version.name,
        "version": version.number,
        "classes": version.classes,
        "labels": np.array(version.classes, object).take(model.labels_of(scores, probabilities)).tolist(),
        "scores": _nested(scores),
        "probabilities": None if probabilities is None else probabilities.tolist(),
        "warnings": warnings,
    }
    return Response(_ENCODER.encode(content), media_type="application/json")


def _nested(scores: NDArray[np.float64]) -> list[list[float]] | msgspec.Raw:
    """The scores as a list a document. One column is encoded without making the lists, which would take longer than the prediction."""
    if scores.shape[1] > 1:
        nested: list[list[float]] = scores.tolist()
        return nested
    return msgspec.Raw(b"[" + _ENCODER.encode(scores[:, 0].tolist()).replace(b",", b"],[") + b"]")


def collect_scores(batches: Iterable[ScoredBatch]) -> tuple[NDArray[np.float64], list[str]]:
    """Scores of all documents, and warnings about unseen features."""
    scores, unseen = [], UnseenCounter()
    for scored in batches:
        scores.append(scored.scores)
        unseen.count(scored)
    return np.concatenate(scores), unseen.warnings()


def decode_documents(
    blocks: Iterable[bytes],
    headers: Mapping[str, str],
    bounds: Bounds,
    reserve: Reserve = reserve_nothing,
    query: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Batch]:
    """The documents of a body as batches of checked rows.

    Raises InvalidDocuments, LimitExceeded, TooManyRequests, UnsupportedMediaType.
    """
    body = body_decoder(headers, bounds, reserve=reserve, query=query)
    position = 0
    for batch in _batches(body, blocks):
        rows, faults = checked(batch.rows, MAX_FAULTS)
        if faults:
            raise invalid_documents([identify_fault(fault, batch, position) for fault in faults])
        position += rows.n_rows
        if position > bounds.documents:
            raise LimitExceeded("documents", bounds.documents)
        yield batch._replace(rows=rows)
    if not position:
        raise InvalidDocuments("there is no document", [Fault("", "documents", "there is none")])


def _batches(body: BodyDecoder, blocks: Iterable[bytes]) -> Iterator[Batch]:
    for block in blocks:
        yield from body.feed(block)
    yield from body.finish()
