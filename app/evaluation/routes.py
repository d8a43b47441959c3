"""Routes of evaluations, by the version that a model serves, an alias, or a version number."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.evaluation.plot_files import PLOTS, SVG
from app.evaluation.schemas import EvaluateBody, Evaluation
from app.evaluation.service import HTML, JSON, evaluate
from app.http.openapi_fragments import DOCUMENT_BODY, DOCUMENTS, error_responses, json_body, path_parameter
from app.http.route_classes import RawRoute
from app.http.version_numbers import NUMBER, version_reference
from app.services import services_of

router = APIRouter(prefix="/v1/models", tags=["evaluations"], route_class=RawRoute)

_MODEL = path_parameter("name", "Name of a model (the version that it serves), or name@alias.")
_NUMBER = path_parameter("number", "Number of the version.", NUMBER)
_ACCEPT = {
    "name": "Accept",
    "in": "header",
    "required": False,
    "description": f"{JSON}, {HTML} for a page with plots, or with `plot` {SVG}.",
    "schema": {"type": "string", "enum": [JSON, HTML, SVG, "*/*"]},
}
_PLOT = {
    "name": "plot",
    "in": "query",
    "required": False,
    "description": f"Answer with this plot alone, as {SVG}: confusion (of the 30 labels with the most documents, where there are more), "
    "precision_recall (of the 8), or reliability (of models with probabilities).",
    "schema": {"type": "string", "enum": list(PLOTS)},
}
_ANY = {**_ACCEPT, "description": f"{JSON}, {HTML} for a page with plots; a plot is always {SVG}.", "schema": {"type": "string", "enum": ["*/*"]}}
"""What links accept. No type fits every query, so that the contract names none."""
_PAGE = {"schema": {"type": "string"}, "example": "<!doctype html>…"}
_DRAWING = {"schema": {"type": "string"}, "example": "<svg …>…</svg>"}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": Evaluation, "description": "The figures, a page of them, or a plot", "content": {HTML: _PAGE, SVG: _DRAWING}},
    **error_responses(404, 406, 408, 413, 415, 422, 429, 503, 507),
}
_SHOWN: dict[int | str, dict[str, Any]] = {200: _ANSWERS[200], **error_responses(404, 406, 422, 429, 503, 507)}
_ANNOTATIONS = "Labels to compare with: those that people gave by so many entries of the log, or by all (latest); by default those of the dataset."
_HELD_OUT = {
    "type": "boolean",
    "default": False,
    "description": "Leave out the documents of the dataset whose labels the version was trained on.",
}
_BODY = json_body(EvaluateBody, {"dataset": "ds-…"}, documents=DOCUMENTS["properties"]["documents"], held_out=_HELD_OUT)


def _extra(*parameters: dict[str, Any]) -> dict[str, Any]:
    content = DOCUMENT_BODY["requestBody"]["content"] | _BODY["requestBody"]["content"]
    body = {"required": True, "content": content, "description": "A dataset (needs the scope train), or labeled documents (needs the scope predict)."}
    return {"requestBody": body, "parameters": [*parameters, _PLOT, _ACCEPT, *DOCUMENT_BODY["parameters"]]}


def _query(*parameters: dict[str, Any]) -> dict[str, Any]:
    """What a link to an evaluation has in its query."""
    dataset = {"name": "dataset", "in": "query", "required": True, "description": "Id of the dataset.", "schema": {"type": "string"}}
    held_out = {"name": "held_out", "in": "query", "required": False, "description": _HELD_OUT["description"], "schema": {"type": "boolean"}}
    latest = {"anyOf": [{"const": "latest"}, {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}]}
    annotations = {"name": "annotations", "in": "query", "required": False, "description": _ANNOTATIONS, "schema": latest}
    return {"parameters": [*parameters, dataset, held_out, annotations, _PLOT, _ANY]}


@router.get("/{name}/evaluate", responses=_SHOWN, openapi_extra=_query(_MODEL))
async def show_evaluation(request: Request) -> Response:
    """Show how good the version that a model serves, or that of an alias, is on a dataset: the same as by POST, as a link."""
    return await evaluate(request, services_of(request), request.path_params["name"])


@router.get("/{name}/versions/{number}/evaluate", responses=_SHOWN, openapi_extra=_query(path_parameter("name", "Name of the model."), _NUMBER))
async def show_evaluation_of_version(request: Request) -> Response:
    """Show how good one version of a model is on a dataset: the same as by POST, as a link."""
    return await evaluate(request, services_of(request), version_reference(request))


@router.post("/{name}/evaluate", responses=_ANSWERS, openapi_extra=_extra(_MODEL))
async def evaluate_newest(request: Request) -> Response:
    """Evaluate the version that a model serves, or that of an alias, on labeled documents."""
    return await evaluate(request, services_of(request), request.path_params["name"])


@router.post("/{name}/versions/{number}/evaluate", responses=_ANSWERS, openapi_extra=_extra(path_parameter("name", "Name of the model."), _NUMBER))
async def evaluate_version(request: Request) -> Response:
    """Evaluate one version of a model on labeled documents."""
    return await evaluate(request, services_of(request), version_reference(request))
