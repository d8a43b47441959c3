"""A version as a file that predicts without the service."""

import tempfile
from collections.abc import Mapping
from importlib.metadata import version as installed
from typing import IO, Any, Literal

from starlette.responses import StreamingResponse

from app.errors import InvalidRequest
from app.http.bodies import in_thread
from app.http.files import iter_file
from app.services import Services
from core.exports.archive import write_archive
from core.exports.onnx import NotExportable, write_onnx
from workers.contract import Version
from workers.store.os_errors import translate_os_errors

ExportFormat = Literal["numpy", "onnx"]
_FILES: Mapping[ExportFormat, tuple[str, str]] = {"numpy": ("zip", "application/zip"), "onnx": ("onnx", "application/octet-stream")}


async def export(services: Services, name: str, number: int, format: ExportFormat) -> StreamingResponse:
    """The file of a version, written whole before the answer begins; raises InvalidRequest, NotFound, StoreUnavailable."""
    file, size = await in_thread(services.load_pool, _written, services, name, number, format)
    ending, media_type = _FILES[format]
    headers = {"Content-Length": str(size), "Content-Disposition": f'attachment; filename="{name}-{number}.{ending}"'}
    return StreamingResponse(iter_file(file), headers=headers, media_type=media_type)


@translate_os_errors("write", "an export")
def _written(services: Services, name: str, number: int, format: ExportFormat) -> tuple[IO[bytes], int]:
    version = services.models.version(name, number)
    model, about = services.model_cache.load(version), _about(version)
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was sent
    try:
        if format == "numpy":
            write_archive(model, about, file)
        else:
            write_onnx(model, about, file)
        size = file.tell()
        file.seek(0)
    except NotExportable as error:
        file.close()
        raise InvalidRequest("format", str(error)) from None
    except BaseException:
        file.close()
        raise
    return file, size


def _about(version: Version) -> dict[str, Any]:
    return {
        "name": version.name,
        "version": version.number,
        "kind": version.kind,
        "algorithm": version.algorithm,
        "classes": version.classes,
        "created_at": version.created_at.isoformat(),
        "halfmoon": installed("halfmoon"),
    }
