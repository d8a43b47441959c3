"""The key of a person at the page: exchanged once for a cookie that scripts cannot read and that other sites cannot
use.
"""

from typing import Annotated

import msgspec
from fastapi import Request
from msgspec import Meta
from starlette.responses import Response

from app.http.access import COOKIE
from app.http.bodies import read_json
from app.services import Services


class SessionBody(msgspec.Struct, forbid_unknown_fields=True):
    """The key of a person."""

    key: Annotated[str, Meta(min_length=1, max_length=256)]


async def begin(request: Request, services: Services) -> Response:
    """Set the cookie; raises Unauthenticated for a key that is not valid."""
    body = await read_json(request, services, SessionBody)
    services.access.check_key(body.key)
    response = Response(status_code=204)
    response.set_cookie(
        COOKIE, body.key, httponly=True, samesite="strict", secure=request.url.scheme == "https", path=_path(request)
    )
    return response


def end(request: Request) -> Response:
    """Remove the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", path=_path(request))
    return response


def _path(request: Request) -> str:
    """Path of the service, which may lie below a prefix."""
    return f"{request.scope.get('root_path', '')}/"
