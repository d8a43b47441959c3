"""Routes of suggestions, by the version that a model serves, an alias, or a version number."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.http.openapi_fragments import ENCODING, error_responses, json_body, path_parameter
from app.http.route_classes import RawRoute
from app.http.version_numbers import NUMBER, version_reference
from app.predictions.suggestion import SuggestBody, Suggestions, suggest
from app.services import services_of

router = APIRouter(prefix="/v1/models", tags=["suggestions"], route_class=RawRoute)

_MODEL = path_parameter("name", "Name of a model (the version that it serves), or name@alias.")
_VERSION = (path_parameter("name", "Name of the model."), path_parameter("number", "Number of the version.", NUMBER))
_ANSWERS: dict[int | str, dict[str, Any]] = {200: {"model": Suggestions}, **error_responses(404, 408, 413, 415, 422, 429, 503, 507)}


def _extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    described = json_body(SuggestBody, {"dataset": "ds-…", "n": 20, "strategy": "diverse"})
    return {**described, "parameters": [*parameters, ENCODING]}


@router.post("/{name}/suggest", responses=_ANSWERS, openapi_extra=_extra(_MODEL))
async def suggest_newest(request: Request) -> Response:
    """Suggest documents of a dataset to label next, by the version that a model serves, or by that of an alias.

    Only documents are suggested that have no label in that dataset, and that nobody has labeled or left out in its log: all of them, if they are
    fewer than requested. When their labels come in, by `POST /v1/datasets/{id}/annotations` or `PUT /v1/datasets/{id}/labels`, the service knows how
    they were come by.
    """
    return await suggest(request, services_of(request), request.path_params["name"])


@router.post("/{name}/versions/{number}/suggest", responses=_ANSWERS, openapi_extra=_extra(*_VERSION))
async def suggest_by_version(request: Request) -> Response:
    """Suggest documents of a dataset to label next, by one version of a model."""
    return await suggest(request, services_of(request), version_reference(request))
