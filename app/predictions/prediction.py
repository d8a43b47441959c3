"""From a body of documents to an answer: decode, look the model up, score. Nothing here is of FastAPI but the request."""

from collections.abc import Iterable, Iterator, Mapping

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
from app.predictions.scoring import Scored, Unseen, named, score_posted
from app.services import Services
from core.documents.kinds import checked
from core.errors import Fault, InvalidDocuments
from core.models.model import Model
from workers.contract import Version
from workers.errors import LimitExceeded
from workers.repositories.datasets import Batch

_ENCODER = msgspec.json.Encoder()
_ROW_WORK, _COLUMN_WORK = 1000, 100
"""multiplications that it costs as much as to answer for a document, and for each class of it"""
_LITTLE_WORK = 4_000_000
"""multiplications: some milliseconds"""


async def predict(request: Request, services: Services, reference: str) -> Response:
    """Labels and scores of the documents in the body, by the version that ``reference`` stands for now.

    Small bodies are read on the event loop, and answered there where that is little work: a thread would cost more.
    """
    bounds = services.settings.prediction_bounds
    blocks = await read_blocks(request, bounds)
    version, model = await version_and_model(services, reference)
    batches: Iterable[Batch] = documents_in(blocks, request.headers, bounds, request.scope[RESERVATION].grow)
    if sum(map(len, blocks)) < services.settings.large_request_bytes and not is_compressed(request.headers):
        batches = list(batches)
        if is_little(model, sum(batch.rows.n_rows for batch in batches)):
            return _answer(version, model, batches)
    return await in_thread(services.predict_pool, _answer, version, model, batches)


def is_little(model: Model, n_rows: int) -> bool:
    """Whether the answer for so many documents may be computed on the event loop: whether that takes some milliseconds at most."""
    return n_rows * (_ROW_WORK + _COLUMN_WORK * len(model.classes) + model.row_work) <= _LITTLE_WORK


async def version_and_model(services: Services, reference: str) -> tuple[Version, Model]:
    """The version that a reference stands for now, and its model, loaded; raises NotFound."""
    cache = services.model_cache
    version = cache.resolve(reference) if cache.resolves_fast else await in_thread(services.predict_pool, cache.resolve, reference)
    model = cache.find(version)
    if model is None:
        model = await in_thread(services.predict_pool, cache.load, version)
    return version, model


def _answer(version: Version, model: Model, batches: Iterable[Batch]) -> Response:
    scores, warnings = gathered(score_posted(model, batches))
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
    """The scores as a list for each document; of a single column without making the lists, which would take longer than all the rest."""
    if scores.shape[1] > 1:
        nested: list[list[float]] = scores.tolist()
        return nested
    return msgspec.Raw(b"[" + _ENCODER.encode(scores[:, 0].tolist()).replace(b",", b"],[") + b"]")


def gathered(batches: Iterable[Scored]) -> tuple[NDArray[np.float64], list[str]]:
    """Scores of all documents, and what is to be said of their features."""
    scores, unseen = [], Unseen()
    for scored in batches:
        scores.append(scored.scores)
        unseen.count(scored)
    return np.concatenate(scores), unseen.warnings()


def documents_in(blocks: Iterable[bytes], headers: Mapping[str, str], bounds: Bounds, reserve: Reserve = reserve_nothing) -> Iterator[Batch]:
    """The documents of a body as batches of checked rows; raises InvalidDocuments, LimitExceeded, TooManyRequests, UnsupportedMediaType."""
    body = body_decoder(headers, bounds, reserve=reserve)
    position = 0
    for batch in _batches(body, blocks):
        rows, faults = checked(batch.rows, MAX_FAULTS)
        if faults:
            raise invalid_documents([named(fault, batch, position) for fault in faults])
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
