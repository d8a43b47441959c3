"""Routes of predictions and explanations, by the version that a model serves, an alias, or a version number."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.http.openapi_fragments import DOCUMENT_BODY, DOCUMENTS, ENCODING, EXTRA, error_responses, json_body, path_parameter
from app.http.route_classes import RawRoute
from app.http.version_numbers import NUMBER, version_reference
from app.predictions.explanation import ExplainBody, ExplanationOut, explain
from app.predictions.label import LabelBody, LabelOut, label
from app.predictions.prediction import predict
from app.predictions.schemas import Prediction
from app.services import services_of

router = APIRouter(prefix="/v1/models", tags=["predictions"], route_class=RawRoute)

_MODEL = path_parameter("name", "Name of a model (the version that it serves), or name@alias.")
_VERSION = (path_parameter("name", "Name of the model."), path_parameter("number", "Number of the version.", NUMBER))
_ANSWERS: dict[int | str, dict[str, Any]] = {200: {"model": Prediction}, **error_responses(404, 408, 413, 415, 422, 429, 503)}


_EXPLAINED: dict[int | str, dict[str, Any]] = {200: {"model": ExplanationOut}, **error_responses(404, 408, 413, 415, 422, 429, 503)}


_LABELED: dict[int | str, dict[str, Any]] = {200: {"model": LabelOut}, **error_responses(404, 408, 413, 415, 422, 429, 503)}


def _label_extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    return {**json_body(LabelBody, {"text": "The goalkeeper saved the penalty."}), "parameters": [*parameters, ENCODING]}


def _explain_extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    example = {"documents": [{"id": "d1", "indices": [3, 17], "values": [0.2, 0.9]}], "n": 10}
    described = json_body(ExplainBody, example, documents=DOCUMENTS["properties"]["documents"])
    described["requestBody"]["required"] = False
    return {**described, "parameters": [*parameters, EXTRA, ENCODING]}


def _extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    return {**DOCUMENT_BODY, "parameters": [*parameters, *DOCUMENT_BODY["parameters"]]}


@router.post("/{name}/predict", responses=_ANSWERS, openapi_extra=_extra(_MODEL))
async def predict_newest(request: Request) -> Response:
    """Predict labels and scores by the version that a model serves, or by that of an alias."""
    return await predict(request, services_of(request), request.path_params["name"])


@router.post("/{name}/versions/{number}/predict", responses=_ANSWERS, openapi_extra=_extra(*_VERSION))
async def predict_version(request: Request) -> Response:
    """Predict labels and scores by one version of a model."""
    return await predict(request, services_of(request), version_reference(request))


@router.post("/{name}/label", responses=_LABELED, openapi_extra=_label_extra(_MODEL))
async def label_newest(request: Request) -> Response:
    """Label one text by the version that a model serves, or by that of an alias, with an answer that is flat."""
    return await label(request, services_of(request), request.path_params["name"])


@router.post("/{name}/explain", responses=_EXPLAINED, openapi_extra=_explain_extra(_MODEL))
async def explain_newest(request: Request) -> Response:
    """Explain the version that a model serves, or that of an alias, and scores of documents.

    A linear model lists features. A kernel model lists training documents, by their position in the training dataset and, while that exists, by
    their id.
    """
    return await explain(request, services_of(request), request.path_params["name"])


@router.post("/{name}/versions/{number}/explain", responses=_EXPLAINED, openapi_extra=_explain_extra(*_VERSION))
async def explain_version(request: Request) -> Response:
    """Explain one version of a model, and scores of documents."""
    return await explain(request, services_of(request), version_reference(request))
