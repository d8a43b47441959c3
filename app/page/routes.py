"""Routes of the page. They are for its own files, so they are not part of the contract.

The key of a person is exchanged once for a cookie that scripts cannot read and that other sites cannot use."""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from fastapi import APIRouter, HTTPException, Request
from msgspec import Meta
from starlette.responses import Response

from app.codecs.dispatch import ENDINGS
from app.http.access import COOKIE
from app.http.answers import negotiate
from app.http.requests import AuthorizedRoute, RawRoute, read_json, services_of

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src "
    "'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content-Security-Policy: files of this server alone, no script or style in the page, no text that becomes code or
markup."""
_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """A file of the page."""

    media_type: str
    data: bytes
    compressed: bytes
    tag: str
    """Entity tag, a digest of the content."""

    def response(self, request: Request) -> Response:
        """The file, or 304 where the browser has it.

        Browsers ask each time, so that a page never runs with files of another version.
        """
        headers = {"ETag": self.tag, "Cache-Control": "no-cache", "Vary": "Accept, Accept-Encoding"}
        if self.media_type == "text/html":
            headers["Content-Security-Policy"] = POLICY
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(
                self.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type
            )
        return Response(self.data, headers=headers, media_type=self.media_type)


@cache
def page_files() -> Mapping[str, PageFile]:
    """The files by their paths below the package."""
    folder = Path(__file__).parent
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in _TYPES:
            data = path.read_bytes()
            tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
            name = path.relative_to(folder).as_posix()
            found[name] = PageFile(_TYPES[path.suffix], data, gzip.compress(data, 9, mtime=0), tag)
    return found


_INDEX = "index.html"

router = APIRouter(tags=["page"], include_in_schema=False, route_class=AuthorizedRoute)
session_router = APIRouter(tags=["page"], include_in_schema=False, route_class=RawRoute)


class SessionBody(msgspec.Struct, forbid_unknown_fields=True):
    """The key of a person."""

    key: Annotated[str, Meta(min_length=1, max_length=256)]


def _path(request: Request) -> str:
    """Path of the service, which may lie below a prefix."""
    return f"{request.scope.get('root_path', '')}/"


@router.get("/")
async def show_page(request: Request) -> Response:
    """Show the page to browsers. Other clients get the answer of a path where nothing is."""
    if negotiate(request, ("application/json", "text/html")) != "text/html":
        raise HTTPException(404)
    return page_files()[_INDEX].response(request)


@session_router.post("/page/session")
async def begin_session(request: Request) -> Response:
    """Exchange a key for a cookie; a key that is not valid is refused."""
    services = services_of(request)
    body = await read_json(request, services, SessionBody)
    services.access.check_key(body.key)
    response = Response(status_code=204)
    response.set_cookie(
        COOKIE, body.key, httponly=True, samesite="strict", secure=request.url.scheme == "https", path=_path(request)
    )
    return response


@router.delete("/page/session", status_code=204)
async def end_session(request: Request) -> Response:
    """Forget the key: remove the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict", path=_path(request))
    return response


@router.get("/page/endings.json")
async def list_endings() -> dict[str, str]:
    """List the media types of files by the ending of their names."""
    return ENDINGS


@router.get("/page/{path:path}")
async def show_file(request: Request, path: str) -> Response:
    """Show a file of the page."""
    file = page_files().get(path)
    if file is None or path == _INDEX:
        raise HTTPException(404)
    return file.response(request)
