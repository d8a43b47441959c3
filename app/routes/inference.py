"""The Open Inference Protocol (KServe V2), for gateways and clients that speak it. A model may be named by its alias: ``news@live``."""

from importlib.metadata import version as version_of
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.bodies import in_thread
from app.checked import CheckedRoute, PlainRoute
from app.documented import ENCODING, path_parameter, v2_refusals
from app.inference import infer, metadata
from app.oip import InferenceResponse, ModelMetadata, ModelReady, ServerLive, ServerMetadata, ServerReady
from app.predicting import version_and_model
from app.routes.health import ready as ready_now
from app.routes.numbers import NUMBER, VersionNumber, checked_number
from app.schemas import Ready
from app.services import Has, Services, services_of
from workers.errors import Unavailable

health = APIRouter(prefix="/v2", tags=["health"], route_class=CheckedRoute)
router = APIRouter(prefix="/v2/models", tags=["inference"], route_class=CheckedRoute)
bodies = APIRouter(prefix="/v2/models", tags=["inference"], route_class=PlainRoute)

_MODEL = path_parameter("name", "A model (its newest version) or model@alias.")
_NUMBER = path_parameter("number", "Of the version.", NUMBER)
_EXAMPLE = {
    "id": "42",
    "inputs": [
        {"name": "indptr", "shape": [3], "datatype": "INT64", "data": [0, 2, 3]},
        {"name": "indices", "shape": [3], "datatype": "INT64", "data": [3, 17, 4]},
        {"name": "data", "shape": [3], "datatype": "FP32", "data": [0.2, 0.9, 1.0]},
    ],
}
_ANSWERS: dict[int | str, dict[str, Any]] = {200: {"model": InferenceResponse}, **v2_refusals(400, 404, 408, 413, 415, 429, 503)}


def _extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/InferenceRequest"}
    return {
        "parameters": [*parameters, ENCODING],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema, "example": _EXAMPLE}}},
    }


@health.get("/health/live")
async def oip_live() -> ServerLive:
    """The process answers."""
    return ServerLive(live=True)


@health.get("/health/ready", responses=v2_refusals(503))
def oip_ready(services: Has) -> ServerReady:
    """The store and Redis can be written."""
    if not isinstance(ready_now(services), Ready):
        raise Unavailable("Redis or the store cannot be written; /v1/health/ready says which")
    return ServerReady(ready=True)


@health.get("")
@health.get("/", include_in_schema=False)
async def oip_server() -> ServerMetadata:
    """Who answers."""
    return ServerMetadata(name="halfmoon", version=version_of("halfmoon"), extensions=[])


@router.get("/{name}", responses=v2_refusals(400, 404, 503))
async def oip_model(services: Has, name: str) -> ModelMetadata:
    """The tensors of the newest version of a model, or of the one that an alias stands for."""
    return await _metadata(services, name)


@router.get("/{name}/versions/{number}", responses=v2_refusals(400, 404, 503))
async def oip_version(services: Has, name: str, number: VersionNumber) -> ModelMetadata:
    """The tensors of a version."""
    return await _metadata(services, f"{name}/{checked_number(name, number)}")


@router.get("/{name}/ready", responses=v2_refusals(400, 404, 503))
async def oip_model_ready(services: Has, name: str) -> ModelReady:
    """The newest version, or the one that an alias stands for, is loaded."""
    return await _ready(services, name)


@router.get("/{name}/versions/{number}/ready", responses=v2_refusals(400, 404, 503))
async def oip_version_ready(services: Has, name: str, number: VersionNumber) -> ModelReady:
    """A version is loaded."""
    return await _ready(services, f"{name}/{checked_number(name, number)}")


@bodies.post("/{name}/infer", responses=_ANSWERS, openapi_extra=_extra(_MODEL))
async def oip_infer(request: Request) -> Response:
    """Labels and scores by the newest version of a model, or by the one that an alias stands for."""
    return await infer(request, services_of(request), request.path_params["name"])


@bodies.post("/{name}/versions/{number}/infer", responses=_ANSWERS, openapi_extra=_extra(path_parameter("name", "Of the model."), _NUMBER))
async def oip_infer_version(request: Request) -> Response:
    """Labels and scores by one version of a model."""
    name = request.path_params["name"]
    return await infer(request, services_of(request), f"{name}/{checked_number(name, request.path_params['number'])}")


async def _metadata(services: Services, reference: str) -> ModelMetadata:
    version, model = await version_and_model(services, reference)
    versions = await in_thread(services.predicting, services.models.registry.versions, version.name)
    return metadata(version, model, [each.number for each in versions])


async def _ready(services: Services, reference: str) -> ModelReady:
    version, _ = await version_and_model(services, reference)
    return ModelReady(name=version.name, ready=True)
