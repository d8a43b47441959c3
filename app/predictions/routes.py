"""Routes of predictions, explanations and suggestions."""

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.http.requests import MODEL, RawRoute, on_versions, services_of, version_reference
from app.http.schemas import DOCUMENT_BODY, DOCUMENTS, ENCODING, EXTRA, error_responses, json_body
from app.predictions.explanation import explain
from app.predictions.schemas import (
    ExplainBody,
    ExplanationOut,
    LabelBody,
    LabelOut,
    LabelsOut,
    Prediction,
    SuggestBody,
    Suggestions,
)
from app.predictions.service import label, predict
from app.predictions.suggestion import suggest

router = APIRouter(prefix="/v1/models", tags=["predictions"], route_class=RawRoute)
suggestions_router = APIRouter(prefix="/v1/models", tags=["suggestions"], route_class=RawRoute)

_EXPLAINED = json_body(
    ExplainBody,
    {"documents": [{"id": "d1", "indices": [3, 17], "values": [0.2, 0.9]}], "n": 10},
    documents=DOCUMENTS["properties"]["documents"],
)
_EXPLAINED["requestBody"]["required"] = False


def _answers(schema: Any, *others: int) -> dict[int | str, dict[str, Any]]:
    return {200: {"model": schema}, **error_responses(404, 408, 413, 415, 422, 429, 503, *others)}


_INCLUDE: dict[str, Any] = {
    "name": "include",
    "in": "query",
    "required": False,
    "description": "What the answer has beside: text, the texts of the documents.",
    "schema": {"type": "string", "enum": ["text"]},
}


@on_versions(
    router,
    "POST",
    "/predict",
    ("predict_newest", "predict_version"),
    _answers(Prediction),
    **{**DOCUMENT_BODY, "parameters": [*DOCUMENT_BODY["parameters"], _INCLUDE]},
)
async def predict_documents(request: Request) -> Response:
    """Predict labels and scores by one version of a model."""
    return await predict(request, services_of(request), version_reference(request))


@router.post(
    "/{name}/label",
    responses=_answers(LabelOut | LabelsOut),
    openapi_extra={
        **json_body(LabelBody, {"text": "The goalkeeper saved the penalty."}),
        "parameters": [MODEL, ENCODING],
    },
)
async def label_newest(request: Request) -> Response:
    """Label one text by the version that a model or an alias serves, with an answer that is flat."""
    return await label(request, services_of(request), version_reference(request))


@on_versions(
    router,
    "POST",
    "/explain",
    ("explain_newest", "explain_version"),
    _answers(ExplanationOut),
    parameters=[EXTRA, ENCODING],
    **_EXPLAINED,
)
async def explain_documents(request: Request) -> Response:
    """Explain one version of a model, and scores of documents.

    A linear model lists features. A kernel model lists training documents, by their position in the training dataset
    and, while that exists, by their id.
    """
    return await explain(request, services_of(request), version_reference(request))


@on_versions(
    suggestions_router,
    "POST",
    "/suggest",
    ("suggest_newest", "suggest_by_version"),
    _answers(Suggestions, 507),
    parameters=[ENCODING],
    **json_body(SuggestBody, {"dataset": "ds-…", "n": 20, "strategy": "diverse"}),
)
async def suggest_documents(request: Request) -> Response:
    """Suggest documents of a dataset to label next, by one version of a model.

    Only documents are suggested that have no label in that dataset, and that nobody has labeled or left out in its log:
    all of them, if they are fewer than requested. When their labels come in, by `POST /v1/datasets/{id}/annotations` or
    `PUT /v1/datasets/{id}/labels`, the service knows how they were come by.
    """
    return await suggest(request, services_of(request), version_reference(request))
