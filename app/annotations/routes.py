"""Routes of annotations: append to the log of a dataset, read it, summarise it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from app.annotations.schemas import AnnotationOut, AnnotationPage, AnnotationsBody, AnnotationSummary, Appended
from app.annotations.service import append, summary
from app.http.requests import AuthorizedRoute, RawRoute, in_thread, read_json, services_of
from app.http.schemas import ENCODING, PageSize, error_responses, json_body, path_parameter
from app.services import ServicesDep

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=AuthorizedRoute)
raw_router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=RawRoute)

After = Annotated[
    int, Query(ge=0, le=2**31 - 1, description="Number of entries to pass over; those that a client has read.")
]
_EXAMPLE = {"annotations": [{"id": "6b1f…", "document": "d1", "label": "sport", "by": "ann", "mode": "blind"}]}
_APPEND: dict[str, Any] = {
    **json_body(AnnotationsBody, _EXAMPLE),
    "parameters": [path_parameter("id", "Id of the dataset."), ENCODING],
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": Appended},
    **error_responses(404, 408, 413, 415, 422, 429, 503, 507),
}


@raw_router.post("/{id}/annotations", responses=_ANSWERS, openapi_extra=_APPEND)
async def annotate(request: Request) -> Response:
    """Append people's answers to the log of a dataset: labels, documents left out, answers taken back.

    The answer comes when they are durable. The dataset does not change: a job learns from them with `"annotations"`.
    """
    services = services_of(request)
    body = await read_json(request, services, AnnotationsBody)
    appended = await in_thread(services.store_pool, append, services, request.path_params["id"], body)
    return Response(appended.model_dump_json(), media_type="application/json")


@router.get("/{id}/annotations", responses=error_responses(404, 422, 503))
def list_annotations(services: ServicesDep, id: str, after: After = 0, limit: PageSize = 50) -> AnnotationPage:
    """List the log of a dataset, oldest first."""
    log = services.datasets.log(id)
    found = [AnnotationOut.of(number, entry) for number, entry in log.between(after, limit)]
    return AnnotationPage(annotations=found, next=after + limit if len(log) > after + limit else None)


@router.get("/{id}/annotations/summary", responses=error_responses(404, 422, 503))
def summarize_annotations(services: ServicesDep, id: str) -> AnnotationSummary:
    """Summarize the log of a dataset: labels by class, by draw and by person, and how far people agree."""
    return summary(services, id)
