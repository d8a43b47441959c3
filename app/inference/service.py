"""Predictions of the Open Inference Protocol (KServe V2): tensors in, tensors out."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from fastapi import Request
from starlette.responses import Response

from app.codecs.base import MAX_TEXT
from app.errors import InvalidRequest
from app.http.bodies import in_thread, read_json
from app.inference.tensors import SPARSE, TEXT, Tensor, documents_of
from app.predictions.prediction import collect_scores, fits_event_loop, load_model
from app.predictions.scoring import batches_of, score_posted
from app.services import Services
from core.documents.kinds import Kind, Rows
from core.models.model import Model
from workers.contract import Version

PLATFORM = "halfmoon"
_ENCODER = msgspec.json.Encoder()
_INPUTS: dict[Kind, dict[str, str]] = {
    "vectors": dict(zip(SPARSE, ("INT64", "INT64", "FP32"), strict=True)),
    "features": {},
    "text": {TEXT: "BYTES"},
}
"""Input tensors by name. Named features have no form as tensors; they are predicted at /v1."""
_DEFAULT_OUTPUTS = ("labels", "scores", "probabilities")


class OutputRequest(msgspec.Struct):
    """An output that is requested."""

    name: str
    parameters: dict[str, Any] | None = None


class InferBody(msgspec.Struct):
    """A request of the protocol. Unknown fields are allowed, as the protocol requires."""

    inputs: list[Tensor]
    id: str | None = None
    parameters: dict[str, Any] | None = None
    outputs: list[OutputRequest] | None = None


async def infer(request: Request, services: Services, reference: str) -> Response:
    """Labels and scores of the documents in the inputs. Raises InvalidRequest, InvalidDocuments, LimitExceeded, NotFound."""
    body = await read_json(request, services, InferBody)
    version, model = await load_model(services, reference)
    _check_outputs(body)
    bounds = services.settings.prediction_bounds
    if sum(len(bytes(tensor.data)) for tensor in body.inputs) >= services.settings.large_request_bytes:
        return await in_thread(services.predict_pool, lambda: _answer(version, model, body, documents_of(body.inputs, bounds)))
    rows = documents_of(body.inputs, bounds)
    if fits_event_loop(model, rows.n_rows):
        return _answer(version, model, body, rows)
    return await in_thread(services.predict_pool, _answer, version, model, body, rows)


def metadata(version: Version, model: Model, versions: Sequence[int]) -> dict[str, Any]:
    """The input and output tensors of a model; a dimension of -1 has any length."""
    outputs = [("labels", "BYTES", [-1]), ("scores", "FP64", [-1, model.n_columns])]
    if model.probabilities(np.zeros((1, model.n_columns))) is not None:
        outputs.append(("probabilities", "FP64", [-1, len(version.classes)]))
    return {
        "name": version.name,
        "versions": [str(number) for number in versions],
        "platform": PLATFORM,
        "inputs": [{"name": name, "datatype": datatype, "shape": [-1]} for name, datatype in _INPUTS[model.vocabulary.kind].items()],
        "outputs": [{"name": name, "datatype": datatype, "shape": shape} for name, datatype, shape in outputs],
    }


def _check_outputs(body: InferBody) -> None:
    """Refuse outputs in binary form and repeated outputs, by which a short request could make an answer of any length."""
    outputs = body.outputs or []
    if len({output.name for output in outputs}) < len(outputs):
        raise InvalidRequest("outputs", "each output may be requested once")
    if (body.parameters or {}).get("binary_data_output") or any((output.parameters or {}).get("binary_data") for output in outputs):
        raise InvalidRequest("outputs", "the extension for binary data is not supported; outputs are JSON")


def _answer(version: Version, model: Model, body: InferBody, rows: Rows) -> Response:
    found = _outputs(version, model, rows)
    requested = [output.name for output in body.outputs or []] or [name for name in _DEFAULT_OUTPUTS if name in found]
    unknown = next((name for name in requested if name not in found), None)
    if unknown is not None:
        raise InvalidRequest("outputs", f"there is no output {unknown[:MAX_TEXT]!r}; there are {', '.join(found)}")
    content: dict[str, Any] = {"model_name": version.name, "model_version": str(version.number), "outputs": [found[name] for name in requested]}
    if body.id is not None:
        content["id"] = body.id
    return Response(_ENCODER.encode(content), media_type="application/json")


def _outputs(version: Version, model: Model, rows: Rows) -> Mapping[str, dict[str, Any]]:
    scores, _ = collect_scores(score_posted(model, batches_of(model, rows)))
    probabilities = model.probabilities(scores)
    classes = [str(label) for label in version.classes]
    found = {
        "labels": _tensor("labels", "BYTES", [rows.n_rows], [classes[index] for index in model.labels_of(scores).tolist()]),
        "scores": _tensor("scores", "FP64", list(scores.shape), scores.ravel().tolist()),
        "classes": _tensor("classes", "BYTES", [len(classes)], classes),
    }
    if probabilities is not None:
        found["probabilities"] = _tensor("probabilities", "FP64", list(probabilities.shape), probabilities.ravel().tolist())
    return found


def _tensor(name: str, datatype: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}
