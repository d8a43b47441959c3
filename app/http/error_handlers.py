"""Every way in which a request can fail, answered as a problem."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import KINDS, InvalidRequest, answer, in_form_of, problem
from app.http.middleware import shortened
from core.errors import HalfmoonError
from workers.problems import Kind

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_CLIENT_GONE = 499
Handler = Callable[[Request, Exception], Awaitable[Response]]


def add_handlers(app: FastAPI) -> None:
    """Make the application answer all errors alike."""
    app.add_exception_handler(HalfmoonError, _in_form(_refused))
    app.add_exception_handler(RequestValidationError, _in_form(_invalid))
    app.add_exception_handler(HTTPException, _in_form(_http))
    app.add_exception_handler(ClientDisconnect, _gone)


def _in_form(handler: Handler) -> Handler:
    """The handler, its answers in the form that those expect who call that path."""

    async def formed(request: Request, error: Exception) -> Response:
        return in_form_of(request.url.path, await handler(request, error))

    return formed


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HalfmoonError)
    response = answer(error)
    if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("request failed", path=shortened(request.url.path), error=str(error))
    return response


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    named = [{"document": "", "field": ".".join(str(part) for part in each["loc"][1:]), "detail": each["msg"]} for each in error.errors()]
    return problem(KINDS[InvalidRequest], f"{named[0]['field']}: {named[0]['detail']}", named)


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    details = {HTTPStatus.NOT_FOUND: f"nothing is at {request.url.path}", HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not possible here"}
    kind = Kind(status, status.phrase.lower().replace(" ", "-"), status.phrase)
    headers = {"Allow": _allowed(request)} if status == HTTPStatus.METHOD_NOT_ALLOWED else error.headers
    return problem(kind, details.get(status, status.description or status.phrase), headers=headers)


def _allowed(request: Request) -> str:
    """Every method of the path; a router on its own knows only of its own routes."""
    template = getattr(request.scope.get("route"), "path", "")
    return ", ".join(sorted(method.upper() for method in request.app.openapi()["paths"].get(template, {"get": None})))


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=_CLIENT_GONE)


async def _failed(request: Request, error: Exception) -> Response:
    _log.error("request failed", path=shortened(request.url.path), exc_info=error)
    return answer(HalfmoonError())


class ErrorBoundary:
    """Answers what nothing else has caught. It stands inside what counts, marks and logs answers, so that this one is as good as any other."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._answer = _in_form(_failed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an answer that has started is cut off by whoever sends it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_and_note(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except Exception as error:
            if started:
                raise
            response = await self._answer(Request(scope), error)
            await response(scope, receive, send)
