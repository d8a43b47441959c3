"""Predictions of the Open Inference Protocol (KServe V2): tensors in, tensors out."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from fastapi import Request
from starlette.responses import Response

from app.codecs.dispatch import media_type_of
from app.codecs.json.struct import decode_struct
from app.errors import InvalidRequest
from app.http.requests import RESERVATION, in_steps, last_of, read_json
from app.inference.tensors import LENGTH, SPARSE, TEXT, documents_of, read_parts
from app.predictions.scoring import batches_of
from app.predictions.service import AnswerTexts, fits_event_loop, load_model
from app.services.wiring import Services
from core.documents.kinds import Kind, is_dense
from core.documents.part_columns import PartColumns
from core.models.model import Model
from storage.records import MAX_TEXT, Version
from storage.repositories.datasets import Batch

PLATFORM = "halfmoon"
_ENCODER = msgspec.json.Encoder()
_INPUTS: dict[Kind, dict[str, str]] = {
    "vectors": dict(zip(SPARSE, ("INT64", "INT64", "FP32"), strict=True)),
    "features": {},
    "text": {TEXT: "BYTES"},
    "parts": {},
}
"""Input tensors by name; of several parts those of each. Named features have no form as tensors; they are predicted at
/v1."""
_DEFAULT_OUTPUTS = ("labels", "scores", "probabilities")


class OutputRequest(msgspec.Struct):
    """An output that is requested."""

    name: str
    parameters: dict[str, Any] | None = None


class InferBody(msgspec.Struct):
    """A request of the protocol. Unknown fields are allowed, as the protocol requires."""

    inputs: msgspec.Raw
    id: str | None = None
    parameters: dict[str, Any] | None = None
    outputs: list[OutputRequest] | None = None


async def infer(request: Request, services: Services, reference: str) -> Response:
    """Labels and scores of the documents in the inputs.

    Raises InvalidRequest, InvalidDocuments, LimitExceeded, NotFound.
    """
    # clients of Triton give no type to the body
    if media_type_of(request.headers) == "application/json" and LENGTH not in request.headers:
        body, binary = await read_json(request, services, InferBody), memoryview(b"")
    else:
        parts = await read_parts(request, services)
        body, binary = decode_struct(parts.json, InferBody, request.scope[RESERVATION].grow), parts.data
    loaded = await load_model(services, reference)
    version, model, _ = loaded
    # by repeated outputs a short request could make an answer of any length
    outputs = body.outputs or []
    if len({output.name for output in outputs}) < len(outputs):
        raise InvalidRequest("outputs", "each output may be requested once")
    bounds, reserve = services.settings.prediction_bounds, request.scope[RESERVATION].grow
    if len(body.inputs) + len(binary) >= services.settings.large_request_bytes:
        rows = (await in_steps(request, services.pools.predict, documents_of(body.inputs, bounds, reserve, binary)))[-1]
    else:
        *_, rows = documents_of(body.inputs, bounds, reserve, binary)
    assert rows is not None
    answer = _answer(
        version, model, body, AnswerTexts(model, map(str, version.classes), reserve, flat=True), batches_of(model, rows)
    )
    small, pool = fits_event_loop(model, rows.n_rows), services.pools.predicting(model)
    return loaded.marked(last_of(answer if small else await in_steps(request, pool, answer)))


def metadata(version: Version, model: Model, versions: Sequence[int]) -> dict[str, Any]:
    """The input and output tensors of a model; a dimension of -1 has any length.

    A dense vector is a row of X, as long as in the training.
    """
    vocabulary = model.vocabulary
    inputs: list[tuple[str, str, list[int]]] = []
    for block in vocabulary.blocks if isinstance(vocabulary, PartColumns) else ():
        if is_dense(block.name):
            inputs.append(("X", "FP32", [-1, block.n_columns]))
        else:
            inputs += [(name, datatype, [-1]) for name, datatype in _INPUTS[block.vocabulary.kind].items()]
    inputs += [(name, datatype, [-1]) for name, datatype in _INPUTS[vocabulary.kind].items()]
    if vocabulary.kind == "vectors":
        inputs.append(("X", "FP32", [-1, -1]))
    outputs = [("labels", *_labels_form(model, -1)), ("scores", "FP64", [-1, model.n_columns])]
    if model.probabilities(np.zeros((1, model.n_columns))) is not None:
        outputs.append(("probabilities", "FP64", [-1, len(version.classes)]))
    return {
        "name": version.name,
        "versions": [str(number) for number in versions],
        "platform": PLATFORM,
        "inputs": [{"name": name, "datatype": datatype, "shape": shape} for name, datatype, shape in inputs],
        "outputs": [{"name": name, "datatype": datatype, "shape": shape} for name, datatype, shape in outputs],
    }


def _labels_form(model: Model, n_rows: int) -> tuple[str, list[int]]:
    """Type and shape of the labels: words, or of several 1 where a label is given, a column a class."""
    return ("INT64", [n_rows, len(model.classes)]) if model.several else ("BYTES", [n_rows])


def _answer(
    version: Version, model: Model, body: InferBody, texts: AnswerTexts, batches: Iterable[Batch]
) -> Iterator[Response | None]:
    """None after each step but the last, then the response."""
    yield from texts.add_each(batches)
    classes = [str(label) for label in version.classes]
    known = {
        "labels": _tensor("labels", *_labels_form(model, texts.n_rows), texts.array("labels")),
        "scores": _tensor("scores", "FP64", [texts.n_rows, model.n_columns], texts.array("scores")),
        "classes": _tensor("classes", "BYTES", [len(classes)], [_ENCODER.encode(classes)]),
    }
    if model.calibration is not None:
        known["probabilities"] = _tensor(
            "probabilities", "FP64", [texts.n_rows, len(classes)], texts.array("probabilities")
        )
    requested = [output.name for output in body.outputs or []] or [name for name in _DEFAULT_OUTPUTS if name in known]
    unknown = next((name for name in requested if name not in known), None)
    if unknown is not None:
        raise InvalidRequest("outputs", f"there is no output {unknown[:MAX_TEXT]!r}; there are {', '.join(known)}")
    parts = [_ENCODER.encode({"model_name": version.name, "model_version": str(version.number)})[:-1], b',"outputs":[']
    for index, name in enumerate(requested):
        parts += [b"," if index else b"", *known[name]]
    parts += [b"]", b"" if body.id is None else b',"id":' + _ENCODER.encode(body.id), b"}"]
    yield Response(b"".join(parts), media_type="application/json")


def _tensor(name: str, datatype: str, shape: list[int], data: Iterable[bytes]) -> Iterator[bytes]:
    yield _ENCODER.encode({"name": name, "datatype": datatype, "shape": shape})[:-1] + b',"data":'
    yield from data
    yield b"}"
