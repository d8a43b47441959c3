"""Routes of datasets: upload, list, show, relabel and delete."""

from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.datasets.schemas import ClassesBody, ClassList, DatasetChanges, DatasetOut, DatasetPage, LabelsBody
from app.datasets.service import LabelChanges, change_profile, classes_of, read_dataset, set_classes
from app.http.answers import json_answer
from app.http.requests import (
    RESERVATION,
    AuthorizedRoute,
    RawRoute,
    in_steps,
    in_thread,
    on_json,
    read_json,
    services_of,
)
from app.http.schemas import (
    DOCUMENT_BODY,
    DRAWS,
    ENCODING,
    EXCLUDED,
    LABELS,
    Cursor,
    PageSize,
    error_responses,
    json_body,
    left_out,
    path_parameter,
)
from app.services.wiring import Services, ServicesDep
from storage.names import TITLE
from storage.records import Dataset
from storage.repositories.datasets.repository import DatasetProfile

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=AuthorizedRoute)
raw_router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=RawRoute)

_NAME = {
    "name": "name",
    "in": "query",
    "required": False,
    "description": "1 to 128 characters in a line; need not be unique. A relabeled dataset keeps its name by default.",
    "schema": {"type": "string", "pattern": f"^{TITLE}$"},
}
_UPLOAD: dict[str, Any] = {**DOCUMENT_BODY, "parameters": [_NAME, *DOCUMENT_BODY["parameters"]]}
_LABELS: dict[str, Any] = {
    **json_body(
        LabelsBody,
        {"labels": {"d1": "sport", "d2": None}, "drawn": {"d1": "random"}},
        labels=LABELS,
        drawn=DRAWS,
        **{"not": EXCLUDED},
    ),
    "parameters": [path_parameter("id", "Id of the dataset."), _NAME, ENCODING],
}
_CREATED: dict[int | str, dict[str, Any]] = {
    201: {
        "model": DatasetOut,
        "description": "Created and durable",
        "headers": {"Location": {"description": "URL of the dataset.", "schema": {"type": "string"}}},
    }
}


@raw_router.post(
    "",
    status_code=201,
    responses={**_CREATED, **error_responses(408, 413, 415, 422, 429, 503, 507)},
    openapi_extra=_UPLOAD,
)
async def create_dataset(request: Request) -> Response:
    """Create a dataset from the documents in the body, which is read as a stream."""
    return _created(await read_dataset(request, services_of(request), request.query_params.get("name")))


@router.get("", responses=error_responses(422, 503))
def list_datasets(services: ServicesDep, limit: PageSize = 50, cursor: Cursor = None) -> DatasetPage:
    """List datasets, newest first."""
    found, following = services.datasets.list(limit, cursor)
    warnings = left_out(services.store.damage, r"datasets/[^/]+/manifest\.json")
    return DatasetPage(
        datasets=[_shown(services, dataset) for dataset in found], next_cursor=following, warnings=warnings
    )


@router.get("/{id}", responses=error_responses(404, 422, 503))
def show_dataset(services: ServicesDep, id: str) -> DatasetOut:
    """Show a dataset."""
    return _shown(services, services.datasets.get(id))


@on_json(
    raw_router,
    "PATCH",
    "/{id}",
    DatasetChanges,
    DatasetOut,
    {"name": "mails", "guidelines": "Newsletters are ham."},
    [path_parameter("id", "Id of the dataset.")],
    refused=[404],
)
def change_dataset(services: Services, body: DatasetChanges, id: str) -> DatasetOut:
    """Change the name or the guidelines of a dataset, or who labels what, or put it away; documents and labels stay."""
    return change_profile(services, id, body)


@router.get("/{id}/classes", responses=error_responses(404, 422, 503))
def list_classes(services: ServicesDep, id: str) -> ClassList:
    """List the classes of a dataset: those that were set, with their keys, then others that documents have."""
    return classes_of(services, id)


@on_json(
    raw_router,
    "PUT",
    "/{id}/classes",
    ClassesBody,
    ClassList,
    {"classes": [{"name": "spam", "key": "s", "description": "Nobody asked for it."}]},
    [path_parameter("id", "Id of the dataset.")],
    refused=[404],
)
def put_classes(services: Services, body: ClassesBody, id: str) -> ClassList:
    """Set the classes of a dataset, their order, keys and descriptions, for all people who label it.

    Labels stay as they are: a class that documents have is listed in any case.
    """
    return set_classes(services, id, body)


@router.delete("/{id}", status_code=204, response_class=Response, responses=error_responses(404, 409, 422, 503))
def delete_dataset(services: ServicesDep, id: str) -> None:
    """Delete a dataset.

    A dataset that an unfinished job needs cannot be deleted (409).
    """
    services.datasets.delete(id)


@raw_router.put(
    "/{id}/labels",
    status_code=201,
    responses={**_CREATED, **error_responses(404, 408, 413, 415, 422, 429, 503, 507)},
    openapi_extra=_LABELS,
)
async def change_labels(request: Request) -> Response:
    """Create a dataset with the documents of this one and some labels changed, or the kind of all labels.

    The two share the stored documents. Votes and weights stay as they are.
    """
    services = services_of(request)
    body = await read_json(request, services, LabelsBody)
    id, name = request.path_params["id"], request.query_params.get("name")
    changes = LabelChanges()
    try:
        await in_steps(request, services.pools.parse, changes.read(body, request.scope[RESERVATION].grow))
        relabel = partial(
            services.datasets.relabel, id, changes.labels, changes.drawn, name, changes.excluded, body.label_kind
        )
        return _created(await in_thread(services.pools.store, relabel))
    finally:
        await in_thread(services.pools.parse, changes.clear)


def _shown(services: Services, dataset: Dataset) -> DatasetOut:
    return DatasetOut.of(dataset, services.datasets.profile(dataset.id))


def _created(dataset: Dataset) -> Response:
    return json_answer(DatasetOut.of(dataset, DatasetProfile()), 201, {"Location": f"/v1/datasets/{dataset.id}"})
