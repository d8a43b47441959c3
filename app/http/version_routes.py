"""Routes of a version of a model: of the one that a model serves or an alias names, and of the one with a number.

Like an invalid id, an invalid number is answered with 404."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request

from app.http.openapi_fragments import path_parameter
from app.http.route_classes import Handler
from storage.errors import NotFound
from storage.names import VERSION_END, version_number

NUMBER: dict[str, Any] = {"type": "integer", "minimum": 1, "maximum": VERSION_END - 1}


VersionNumber = Annotated[str, Path(json_schema_extra=NUMBER)]
"""Type of the path parameter, as text."""


MODEL = path_parameter("name", "Name of a model (the version that it serves), or name@alias.")
"""Parameter of a path without the number of a version."""
_NAME, _NUMBER = (
    path_parameter("name", "Name of the model."),
    path_parameter("number", "Number of the version.", NUMBER),
)


def on_versions(
    router: APIRouter,
    method: str,
    action: str,
    names: tuple[str, str],
    responses: dict[int | str, dict[str, Any]],
    parameters: Sequence[Mapping[str, Any]] = (),
    **described: Any,
) -> Callable[[Handler], Handler]:
    """Register a handler at ``/{name}{action}`` and at ``/{name}/versions/{number}{action}``, with one description.

    ``names`` are the operations of the two paths, ``described`` is what else the contract says of them.
    """
    paths = (("/{name}", [MODEL]), ("/{name}/versions/{number}", [_NAME, _NUMBER]))

    def register(handle: Handler) -> Handler:
        for (path, own), name in zip(paths, names, strict=True):
            router.add_api_route(
                f"{path}{action}",
                handle,
                methods=[method],
                name=name,
                responses=responses,
                openapi_extra={"parameters": [*own, *parameters], **described},
            )
        return handle

    return register


def version_reference(request: Request) -> str:
    """Reference to the version in the path of a request: by its number, or by the name or alias of the model.

    Raises NotFound.
    """
    name, number = request.path_params["name"], request.path_params.get("number")
    return str(name) if number is None else f"{name}/{checked_number(name, number)}"


def checked_number(name: str, number: str) -> int:
    """The number of a version; raises NotFound."""
    found = version_number(number)
    if found is None:
        raise NotFound("model version", f"{name}/{number}")
    return found
