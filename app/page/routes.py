"""Routes of the page. They are for its own files, so they are not part of the contract."""

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from app.codecs.dispatch import ENDINGS
from app.http.answers.negotiation import negotiate
from app.http.route_classes import AuthorizedRoute, RawRoute
from app.page import session
from app.page.files import page_files
from app.services import services_of

_INDEX = "index.html"

router = APIRouter(tags=["page"], include_in_schema=False, route_class=AuthorizedRoute)
session_router = APIRouter(tags=["page"], include_in_schema=False, route_class=RawRoute)


@router.get("/")
async def show_page(request: Request) -> Response:
    """Show the page to browsers. Other clients get what they get at any path where nothing is."""
    if negotiate(request, ("application/json", "text/html")) != "text/html":
        raise HTTPException(404)
    return page_files()[_INDEX].response(request)


@session_router.post("/page/session")
async def begin_session(request: Request) -> Response:
    """Exchange a key for a cookie."""
    return await session.begin(request, services_of(request))


@router.delete("/page/session", status_code=204)
async def end_session(request: Request) -> Response:
    """Forget the key."""
    return session.end(request)


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
