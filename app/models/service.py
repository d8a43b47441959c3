"""A version as a file that predicts without the service."""

import os
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version as installed
from typing import IO, Literal

from fastapi import Request
from starlette.responses import StreamingResponse

from app.errors import InvalidRequest
from app.http.access import caller_of
from app.http.answers import iter_file, written_file
from app.http.middleware import HELD
from app.http.requests import in_thread
from app.services import Services
from core.exports.archive import write_archive
from core.exports.onnx import NotExportable, write_onnx

ExportFormat = Literal["numpy", "onnx"]
_FILES: Mapping[ExportFormat, tuple[str, str]] = {
    "numpy": ("zip", "application/zip"),
    "onnx": ("onnx", "application/octet-stream"),
}


async def export(
    request: Request, services: Services, name: str, number: int, format: ExportFormat
) -> StreamingResponse:
    """The file of a version, written whole before the answer begins; it counts as an export until it was sent.

    Raises InvalidRequest, NotFound, StoreUnavailable, TooManyRequests.
    """
    request.scope[HELD].append(services.export_limit.reserve(caller_of(request.scope), 1))
    file, size = await in_thread(services.load_pool, _written, services, name, number, format)
    ending, media_type = _FILES[format]
    headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="{name}-{number}.{ending}"'}
    return StreamingResponse(iter_file(file), headers=headers, media_type=media_type)


def _written(services: Services, name: str, number: int, format: ExportFormat) -> tuple[IO[bytes], int]:
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
