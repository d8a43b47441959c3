"""Routes of models: list, show and delete models, versions and aliases."""

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version as installed
from typing import IO, Any, Literal

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from app.errors import InvalidRequest
from app.http.access import caller_of
from app.http.answers import iter_file, written_file
from app.http.middleware import HELD
from app.http.requests import (
    AuthorizedRoute,
    RawRoute,
    VersionNumber,
    checked_number,
    in_thread,
    on_json,
)
from app.http.schemas import NAME, Cursor, PageSize, error_responses, left_out, path_parameter
from app.models.schemas import (
    AliasBody,
    AliasOut,
    EncoderList,
    EncoderOut,
    ModelOut,
    ModelPage,
    ModelSummary,
    VersionOut,
    records_of_models,
)
from app.services.wiring import Services, ServicesDep
from core.exports.archive import write_archive
from core.exports.onnx import NotExportable, write_onnx
from storage.store.json_records import in_parallel
from workers.encoders.encoder import EncoderUnavailable

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=AuthorizedRoute)
raw_router = APIRouter(prefix="/v1/models", tags=["models"], route_class=RawRoute)
encoders_router = APIRouter(prefix="/v1/encoders", tags=["models"], route_class=AuthorizedRoute)

ExportFormat = Literal["numpy", "onnx"]
_FORMATS: Mapping[ExportFormat, tuple[str, str]] = {
    "numpy": ("zip", "application/zip"),
    "onnx": ("onnx", "application/octet-stream"),
}
_BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file", "content": {"application/zip": _BINARY, "application/octet-stream": _BINARY}},
}


@encoders_router.get("")
def list_encoders(services: ServicesDep) -> EncoderList:
    """List the pre-trained encoders that jobs may name, by name. An encoder with unusable files is left out."""
    encoders, found = services.encoders, []
    for name in encoders.names:
        with suppress(EncoderUnavailable):
            id = encoders.id(name)
            found.append(
                EncoderOut(
                    name=name,
                    default=name == encoders.default,
                    digest=id.digest,
                    width=encoders.load(id).width,
                    texts_per_second=round(encoders.texts_per_second(name), 1),
                )
            )
    return EncoderList(encoders=found)


@router.get("", responses=error_responses(422, 503))
def list_models(services: ServicesDep, limit: PageSize = 50, cursor: Cursor = None) -> ModelPage:
    """List the models that have a version, by name."""
    names, following = services.models.names(limit, cursor)
    summaries = in_parallel(partial(ModelSummary.of, services.models), names)
    models = [summary for summary in summaries if summary]
    return ModelPage(
        models=models, next_cursor=following, warnings=left_out(services.store.damage, records_of_models("[^/]+"))
    )


@router.get("/{name}", responses=error_responses(404, 422, 503))
def show_model(services: ServicesDep, name: str) -> ModelOut:
    """Show a model with its versions and aliases."""
    return ModelOut.of(services.models, name, services.store.damage)


@router.delete("/{name}", status_code=204, response_class=Response, responses=error_responses(404, 409, 422, 503))
def delete_model(services: ServicesDep, name: str) -> None:
    """Delete a model with all versions and aliases.

    Its numbers are not used again. A model from which an unfinished job starts cannot be deleted (409).
    """
    services.models.delete(name, services.jobs.starting_from)
    services.version_cache.refresh(name, deleted=True)


@router.get("/{name}/versions/{number}", responses=error_responses(404, 422, 503))
def show_version(services: ServicesDep, name: str, number: VersionNumber) -> VersionOut:
    """Show a version."""
    return VersionOut.of(services.models.version(name, checked_number(name, number)))


@router.get(
    "/{name}/versions/{number}/export",
    response_class=Response,
    responses={**_FILE, **error_responses(404, 422, 429, 503, 507)},
)
async def export_version(
    request: Request, services: ServicesDep, name: str, number: VersionNumber, format: ExportFormat = "numpy"
) -> StreamingResponse:
    """Export a version as a file that predicts without the service.

    `numpy` is a ZIP archive with a module `predict.py`, which reads documents as the service does and needs NumPy
    alone. `onnx` is the graph of a linear model; it takes rows in the columns of the model, which `predict.py` makes of
    documents.
    """
    checked = checked_number(name, number)
    # it counts as an export until it was sent
    request.scope[HELD].append(services.limits.exports.reserve(caller_of(request.scope), 1).__exit__)
    # the file is written whole before the answer begins
    file, size = await in_thread(services.pools.load, _exported, services, name, checked, format)
    ending, media_type = _FORMATS[format]
    headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="{name}-{number}.{ending}"'}
    return StreamingResponse(iter_file(file), headers=headers, media_type=media_type)


@router.delete(
    "/{name}/versions/{number}", status_code=204, response_class=Response, responses=error_responses(404, 409, 422, 503)
)
def delete_version(services: ServicesDep, name: str, number: VersionNumber) -> None:
    """Delete a version.

    Its number is not used again. A version to which an alias points, or from which an unfinished job starts, cannot be
    deleted (409).
    """
    services.models.delete_version(name, checked_number(name, number), services.jobs.starting_from)
    services.version_cache.refresh(name, deleted=True)


@on_json(
    raw_router,
    "PUT",
    "/{name}/aliases/{alias}",
    AliasBody,
    AliasOut,
    {"version": 3},
    [
        path_parameter("name", "Name of the model."),
        path_parameter("alias", "1 to 128 letters, digits, '.', '_' or '-'.", NAME),
    ],
    refused=[404],
)
def set_alias(services: Services, body: AliasBody, name: str, alias: str) -> AliasOut:
    """Point an alias to a version, at once and for every gateway."""
    services.models.set_alias(name, alias, body.version)
    services.version_cache.refresh(name)
    return AliasOut(name=name, alias=alias, version=body.version)


@router.delete(
    "/{name}/aliases/{alias}", status_code=204, response_class=Response, responses=error_responses(404, 422, 503)
)
def delete_alias(services: ServicesDep, name: str, alias: str) -> None:
    """Remove an alias; the version stays."""
    services.models.delete_alias(name, alias)
    services.version_cache.refresh(name)


def _exported(services: Services, name: str, number: int, format: ExportFormat) -> tuple[IO[bytes], int]:
    version = services.models.version(name, number)
    about = {
        "name": version.name,
        "version": version.number,
        "kind": version.kind,
        "algorithm": version.algorithm,
        "classes": version.classes,
        "created_at": version.created_at.isoformat(),
        "halfmoon": installed("halfmoon"),
    }
    write = write_archive if format == "numpy" else write_onnx
    try:
        file = written_file(services.store, partial(write, services.model_cache.load(version), about))
    except NotExportable as error:
        raise InvalidRequest("format", str(error)) from None
    return file, os.fstat(file.fileno()).st_size
