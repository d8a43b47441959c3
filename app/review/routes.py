"""Routes of doubts and audits."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.http.answers import json_answer
from app.http.requests import (
    AuthorizedRoute,
    RawRoute,
    in_thread,
    on_versions,
    read_json,
    services_of,
    version_reference,
)
from app.http.schemas import ENCODING, error_responses, json_body, path_parameter
from app.predictions.scoring import run_scoring
from app.review import audits
from app.review.doubts import doubts
from app.review.schemas import AuditBody, AuditOut, AuditPage, AuditReport, Doubts, DoubtsBody
from app.services.wiring import ServicesDep

doubts_router = APIRouter(prefix="/v1/models", tags=["suggestions"], route_class=RawRoute)
router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=AuthorizedRoute)
raw_router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=RawRoute)

ModelName = Annotated[
    str | None, Query(max_length=300, description="Model, or name@alias; by default that of the audit.")
]
Precision = Annotated[float, Query(ge=0.5, le=0.999, description="Precision to promise of automatic labels.")]
Person = Annotated[
    str | None,
    Query(min_length=1, max_length=256, description="Name of the person to whom documents are open, or not."),
]
_BODIES = (408, 413, 415, 422, 429, 503, 507)
_DOUBTS: dict[int | str, dict[str, Any]] = {200: {"model": Doubts}, **error_responses(404, 409, *_BODIES)}
_LOCATION = {"Location": {"description": "URL of the audit.", "schema": {"type": "string"}}}
_CREATED: dict[int | str, dict[str, Any]] = {
    201: {"model": AuditOut, "description": "Drawn and durable", "headers": _LOCATION},
    **error_responses(404, 409, *_BODIES),
}
_DRAW: dict[str, Any] = {
    **json_body(AuditBody, {"n": 50, "model": "news"}),
    "parameters": [path_parameter("id", "Id of the dataset."), ENCODING],
}


@on_versions(
    doubts_router,
    "POST",
    "/doubts",
    ("doubt_newest", "doubt_by_version"),
    _DOUBTS,
    [ENCODING],
    **json_body(DoubtsBody, {"dataset": "ds-…", "n": 20}),
)
async def doubt_newest(request: Request) -> Response:
    """Doubt labels of the dataset that a model has learned from: those that it finds less likely than others when it is
    not told them.

    Also documents that are nearly the same and have different labels. Labels that people answered again since the
    training are left out.
    """
    return await doubts(request, services_of(request), version_reference(request))


@raw_router.post("/{id}/audits", status_code=201, responses=_CREATED, openapi_extra=_DRAW)
async def draw_audit(request: Request) -> Response:
    """Draw a random sample of the documents without a label, to measure models by.

    Label all of it, by annotations: what is left out makes the error look lower.
    """
    services, id = services_of(request), request.path_params["id"]
    body = await read_json(request, services, AuditBody)
    audit = await in_thread(services.pools.store, audits.draw, services, id, body)
    return json_answer(audit, 201, {"Location": f"/v1/datasets/{id}/audits/{audit.id}"})


@router.get("/{id}/audits", responses=error_responses(404, 422, 503))
def list_audits(services: ServicesDep, id: str) -> AuditPage:
    """List the audits of a dataset, newest first."""
    documents = services.datasets.open(id)
    return AuditPage(audits=[audits.audit_out(audit, documents) for audit in reversed(services.datasets.audits.of(id))])


@router.get("/{id}/audits/{audit}", responses=error_responses(404, 422, 429, 503))
async def show_audit(
    request: Request,
    services: ServicesDep,
    id: str,
    audit: str,
    model: ModelName = None,
    precision: Precision = 0.95,
    share: Person = None,
) -> AuditReport:
    """Show the results of an audit by its labels now: the error of each version with its interval, and the documents
    that may be labeled automatically.
    """
    return await run_scoring(request, services, audits.report, services, id, audit, model, precision, share)
