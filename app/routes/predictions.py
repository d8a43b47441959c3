"""Predictions: the newest version of a model, an alias, or a version by number."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.checked import PlainRoute
from app.documented import DOCUMENT_BODY, path_parameter, refusals
from app.predicting import predict
from app.routes.numbers import NUMBER, checked_number
from app.schemas import Prediction
from app.services import services_of

router = APIRouter(prefix="/v1/models", tags=["predictions"], route_class=PlainRoute)

_MODEL = path_parameter("name", "A model (its newest version) or model@alias.")
_NUMBER = path_parameter("number", "Of the version.", NUMBER)
_ANSWERS: dict[int | str, dict[str, Any]] = {200: {"model": Prediction}, **refusals(404, 408, 413, 415, 422, 429, 503)}


def _extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    return {**DOCUMENT_BODY, "parameters": [*parameters, *DOCUMENT_BODY["parameters"]]}


@router.post("/{name}/predict", responses=_ANSWERS, openapi_extra=_extra(_MODEL))
async def predict_newest(request: Request) -> Response:
    """Labels and scores by the newest version of a model, or by the one that an alias stands for."""
    return await predict(request, services_of(request), request.path_params["name"])


@router.post("/{name}/versions/{number}/predict", responses=_ANSWERS, openapi_extra=_extra(path_parameter("name", "Of the model."), _NUMBER))
async def predict_version(request: Request) -> Response:
    """Labels and scores by one version of a model."""
    name = request.path_params["name"]
    return await predict(request, services_of(request), f"{name}/{checked_number(name, request.path_params['number'])}")
