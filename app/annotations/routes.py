"""Routes of annotations: append to the log of a dataset, read it, summarise it."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.annotations.schemas import AnnotationOut, AnnotationPage, AnnotationsBody, AnnotationSummary, Appended
from app.annotations.service import append, summary
from app.http.requests import AuthorizedRoute, RawRoute, on_json
from app.http.schemas import PageSize, error_responses, path_parameter
from app.services.wiring import Services, ServicesDep

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=AuthorizedRoute)
raw_router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=RawRoute)

After = Annotated[
    int, Query(ge=0, le=2**31 - 1, description="Number of entries to pass over; those that a client has read.")
]
_EXAMPLE = {"annotations": [{"id": "6b1f…", "document": "d1", "label": "sport", "by": "ann", "mode": "blind"}]}


@on_json(
    raw_router,
    "POST",
    "/{id}/annotations",
    AnnotationsBody,
    Appended,
    _EXAMPLE,
    [path_parameter("id", "Id of the dataset.")],
    refused=[404],
)
def annotate(services: Services, body: AnnotationsBody, id: str) -> Appended:
    """Append people's answers to the log of a dataset: labels, documents left out, answers taken back.

    The answer comes when they are durable. The dataset does not change: a job learns from them with `"annotations"`.
    """
    return append(services, id, body)


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
