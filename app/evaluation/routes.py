"""Routes of evaluations, by the version that a model serves, an alias, or a version number."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.evaluation.report import PLOTS, SVG
from app.evaluation.schemas import EvaluateBody, Evaluation
from app.evaluation.service import evaluate
from app.http.answers import HTML, JSON
from app.http.requests import RawRoute, on_versions, services_of, version_reference
from app.http.schemas import DOCUMENT_BODY, DOCUMENTS, error_responses, json_body

router = APIRouter(prefix="/v1/models", tags=["evaluations"], route_class=RawRoute)

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
    "description": f"Answer with this plot alone, as {SVG}: confusion (of the 30 labels with the most documents, "
    "where there are more), "
    "precision_recall (of the 8), or reliability (of models with probabilities).",
    "schema": {"type": "string", "enum": list(PLOTS)},
}
_ANY = {
    **_ACCEPT,
    "description": f"{JSON}, {HTML} for a page with plots; a plot is always {SVG}.",
    "schema": {"type": "string", "enum": ["*/*"]},
}
"""What links accept. No type fits every query, so that the contract names none."""
_PAGE = {"schema": {"type": "string"}, "example": "<!doctype html>…"}
_DRAWING = {"schema": {"type": "string"}, "example": "<svg …>…</svg>"}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Evaluation,
        "description": "The figures, a page of them, or a plot",
        "content": {HTML: _PAGE, SVG: _DRAWING},
    },
    **error_responses(404, 406, 408, 413, 415, 422, 429, 503, 507),
}
_SHOWN: dict[int | str, dict[str, Any]] = {200: _ANSWERS[200], **error_responses(404, 406, 422, 429, 503, 507)}
_ANNOTATIONS = (
    "Labels to compare with: those that people gave by so many entries of the log, or by all (latest); "
    "by default those of the dataset."
)
_HELD_OUT = {
    "type": "boolean",
    "default": False,
    "description": "Leave out the documents of the dataset whose labels the version was trained on.",
}
_BODY = json_body(EvaluateBody, {"dataset": "ds-…"}, documents=DOCUMENTS["properties"]["documents"], held_out=_HELD_OUT)


_QUERY = [
    {
        "name": "dataset",
        "in": "query",
        "required": True,
        "description": "Id of the dataset.",
        "schema": {"type": "string"},
    },
    {
        "name": "held_out",
        "in": "query",
        "required": False,
        "description": _HELD_OUT["description"],
        "schema": {"type": "boolean"},
    },
    {
        "name": "annotations",
        "in": "query",
        "required": False,
        "description": _ANNOTATIONS,
        "schema": {"anyOf": [{"const": "latest"}, {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}]},
    },
    _PLOT,
    _ANY,
]
"""What a link to an evaluation has in its query."""


@on_versions(router, "GET", "/evaluate", ("show_evaluation", "show_evaluation_of_version"), _SHOWN, _QUERY)
@on_versions(
    router,
    "POST",
    "/evaluate",
    ("evaluate_newest", "evaluate_version"),
    _ANSWERS,
    [_PLOT, _ACCEPT, *DOCUMENT_BODY["parameters"]],
    requestBody={
        "required": True,
        "content": DOCUMENT_BODY["requestBody"]["content"] | _BODY["requestBody"]["content"],
        "description": "A dataset (needs the scope train), or labeled documents (needs the scope predict).",
    },
)
async def evaluate_version(request: Request) -> Response:
    """Evaluate one version of a model on labeled documents.

    A link (GET) names a dataset.
    """
    return await evaluate(request, services_of(request), version_reference(request))
