"""Routes of the Open Inference Protocol (KServe V2). A model may be named by an alias: ``news@live``."""

from importlib.metadata import version as version_of
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.http.answers import json_answer
from app.http.requests import RawRoute, in_thread, on_versions, services_of, version_reference
from app.http.schemas import ENCODING, v2_error_responses
from app.inference.service import infer, metadata
from app.operations.routes import Ready
from app.operations.routes import ready as ready_now
from app.predictions.service import load_model
from storage.errors import Unavailable

health_router = APIRouter(prefix="/v2", tags=["health"], route_class=RawRoute)
router = APIRouter(prefix="/v2/models", tags=["inference"], route_class=RawRoute)

_EXAMPLE = {
    "id": "42",
    "inputs": [
        {"name": "indptr", "shape": [3], "datatype": "INT64", "data": [0, 2, 3]},
        {"name": "indices", "shape": [3], "datatype": "INT64", "data": [3, 17, 4]},
        {"name": "data", "shape": [3], "datatype": "FP32", "data": [0.2, 0.9, 1.0]},
    ],
}


def _schema(name: str) -> dict[str, Any]:
    """A reference to a schema of ``app.inference.schemas``.

    That module is loaded with the contract: making its schemas would delay every start.
    """
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


def _answers(name: str, *refused: int) -> dict[int | str, dict[str, Any]]:
    return {200: {"description": "Successful Response", "content": _schema(name)}, **v2_error_responses(*refused)}


_INFER_BODY = {"application/json": {**_schema("InferenceRequest")["application/json"], "example": _EXAMPLE}}


@health_router.get("/health/live", responses=_answers("ServerLive", 400))
async def oip_live(request: Request) -> Response:
    """Report liveness: the process answers."""
    return json_answer({"live": True})


@health_router.get("/health/ready", responses=_answers("ServerReady", 400, 503))
async def oip_ready(request: Request) -> Response:
    """Report readiness: the store and Redis can be written."""
    services = services_of(request)
    if not isinstance(await in_thread(services.pools.store, ready_now, services), Ready):
        raise Unavailable("Redis or the store cannot be written; /v1/health/ready says which")
    return json_answer({"ready": True})


@health_router.get("", responses=_answers("ServerMetadata", 400))
@health_router.get("/", include_in_schema=False)
async def oip_server(request: Request) -> Response:
    """Show the name and the version of the server."""
    return json_answer({"name": "halfmoon", "version": version_of("halfmoon"), "extensions": []})


@on_versions(router, "GET", "", ("oip_model", "oip_version"), _answers("ModelMetadata", 400, 404, 503))
async def oip_model(request: Request) -> Response:
    """Show the input and output tensors of a model."""
    services = services_of(request)
    version, model, _ = await load_model(services, version_reference(request))
    versions = await in_thread(services.pools.load, services.models.versions, version.name)
    return json_answer(metadata(version, model, [each.number for each in versions]))


@on_versions(router, "GET", "/ready", ("oip_model_ready", "oip_version_ready"), _answers("ModelReady", 400, 404, 503))
async def oip_model_ready(request: Request) -> Response:
    """Report that a model is ready; it is loaded if it was not."""
    version, _, _ = await load_model(services_of(request), version_reference(request))
    return json_answer({"name": version.name, "ready": True})


@on_versions(
    router,
    "POST",
    "/infer",
    ("oip_infer", "oip_infer_version"),
    _answers("InferenceResponse", 400, 404, 408, 413, 415, 429, 503),
    [ENCODING],
    requestBody={"required": True, "content": _INFER_BODY},
)
async def oip_infer(request: Request) -> Response:
    """Predict labels and scores of documents that come as tensors."""
    return await infer(request, services_of(request), version_reference(request))
