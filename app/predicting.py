"""From a body of documents to an answer: decode, look the model up, score. Nothing here is of FastAPI but the request."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from fastapi import Request
from starlette.responses import Response

from app.bodies import in_thread, read_bytes
from app.codecs.base import MAX_FAULTS, Bounds
from app.codecs.dispatch import body_of
from app.codecs.documents import refusal
from app.services import Services
from core.errors import Fault, InvalidDocuments
from core.model import Model
from core.rows import SparseRows, find_faults, sorted_rows
from workers.contract import Version
from workers.datasets import Batch

_ENCODER = msgspec.json.Encoder()


async def predict(request: Request, services: Services, reference: str) -> Response:
    """Labels and scores of the documents in the body, by the version that ``reference`` stands for now.

    Small bodies are answered on the event loop, where a thread would cost more than the work.
    """
    settings, models = services.settings, services.models
    data = await read_bytes(request, settings.request_bounds)
    version = models.resolve(reference) if models.quick else await in_thread(services.predicting, models.resolve, reference)
    model = models.find(version)
    if model is None:
        model = await in_thread(services.predicting, models.load, version)
    if len(data) < settings.large_request_bytes and "content-encoding" not in request.headers:
        return _answer(version, model, data, request.headers, settings.request_bounds)
    return await in_thread(services.predicting, _answer, version, model, data, request.headers, settings.request_bounds)


def _answer(version: Version, model: Model, data: bytes, headers: Mapping[str, str], bounds: Bounds) -> Response:
    rows = documents_in(data, headers, bounds)
    scores, unseen = model.scores_and_unseen(rows)
    probabilities = model.probabilities(scores)
    content = {
        "model": version.name,
        "version": version.number,
        "classes": version.classes,
        "labels": [version.classes[place] for place in model.labels_of(scores).tolist()],
        "scores": scores.tolist(),
        "probabilities": None if probabilities is None else probabilities.tolist(),
        "warnings": _warnings(unseen, rows.n_nonzeros),
    }
    return Response(_ENCODER.encode(content), media_type="application/json")


def documents_in(data: bytes, headers: Mapping[str, str], bounds: Bounds) -> SparseRows:
    """All documents of a body as checked rows; raises InvalidDocuments, LimitExceeded, UnsupportedMediaType."""
    body = body_of(headers, bounds, io.BytesIO)
    batches = [*body.feed(data), *body.finish()]
    if not batches:
        raise InvalidDocuments("there is no document", [Fault("", "documents", "there is none")])
    rows = sorted_rows(batches[0].rows if len(batches) == 1 else _joined([batch.rows for batch in batches]))
    faults = find_faults(rows, MAX_FAULTS)
    if faults:
        raise refusal([_named(fault, batches) for fault in faults])
    return rows


def _joined(parts: Sequence[SparseRows]) -> SparseRows:
    steps = np.concatenate([[0], *(np.diff(part.indptr) for part in parts)])
    indices = np.concatenate([part.indices for part in parts])
    values = np.concatenate([part.values for part in parts])
    return SparseRows(np.cumsum(steps, dtype=np.int64), indices, values, max(part.n_features for part in parts))


def _named(fault: Fault, batches: Sequence[Batch]) -> Fault:
    """The fault with the id that the document was given, if it was."""
    if not fault.document:
        return fault
    ids: list[Any] = [id for batch in batches for id in (batch.ids or [None] * batch.rows.n_rows)]
    return fault._replace(document=ids[int(fault.document)] or fault.document)


def _warnings(unseen: int, n_nonzeros: int) -> list[str]:
    if not unseen:
        return []
    return [f"{unseen} of {n_nonzeros} values are of features that the model never saw; they count as zero"]
