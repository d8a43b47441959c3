"""Exception handlers: every way in which a request can fail, answered as a problem."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import PROBLEM_TYPES, InvalidRequest, error_response, in_form_for, problem_response
from app.http.middleware import HttpMiddleware, shortened
from core.errors import HalfmoonError
from storage.problems import ProblemType

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_CLIENT_CLOSED_REQUEST = 499
ErrorHandler = Callable[[Request, Exception], Awaitable[Response]]


def add_error_handlers(app: FastAPI) -> None:
    """Let the application answer all errors as problems."""
    app.add_exception_handler(HalfmoonError, _in_form(_on_halfmoon_error))
    app.add_exception_handler(RequestValidationError, _in_form(_on_validation_error))
    app.add_exception_handler(HTTPException, _in_form(_on_http_exception))
    app.add_exception_handler(ClientDisconnect, _on_disconnect)


def _in_form(handler: ErrorHandler) -> ErrorHandler:
    """The handler, its answers in the form that the path of the request has."""

    async def handle(request: Request, error: Exception) -> Response:
        return in_form_for(request.url.path, await handler(request, error))

    return handle


async def _on_halfmoon_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HalfmoonError)
    response = error_response(error)
    if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("request failed", path=shortened(request.url.path), error=str(error))
    return response


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    named = [
        {"document": "", "field": ".".join(str(part) for part in each["loc"][1:]), "detail": each["msg"]}
        for each in error.errors()
    ]
    return problem_response(PROBLEM_TYPES[InvalidRequest], f"{named[0]['field']}: {named[0]['detail']}", named)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    details = {
        HTTPStatus.NOT_FOUND: f"nothing is at {request.url.path}; /docs describes every call",
        HTTPStatus.METHOD_NOT_ALLOWED: f"{request.method} is not possible here; possible are "
        f"{_allowed_methods(request)}",
    }
    problem_type = ProblemType(status, status.phrase.lower().replace(" ", "-"), status.phrase)
    headers = {"Allow": _allowed_methods(request)} if status == HTTPStatus.METHOD_NOT_ALLOWED else error.headers
    return problem_response(problem_type, details.get(status, status.description or status.phrase), headers=headers)


def _allowed_methods(request: Request) -> str:
    """Every method of the path, from the contract: a router knows only its own routes."""
    template = getattr(request.scope.get("route"), "path", "")
    return ", ".join(sorted(method.upper() for method in request.app.openapi()["paths"].get(template, {"get": None})))


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return Response(status_code=_CLIENT_CLOSED_REQUEST)


async def _on_any_error(request: Request, error: Exception) -> Response:
    _log.error("request failed", path=shortened(request.url.path), exc_info=error)
    return error_response(HalfmoonError())


class ErrorBoundary(HttpMiddleware):
    """ASGI middleware that answers 500 to every error that nothing else handles.

    It stands inside the middleware that counts, tags and logs answers, so that this answer is counted, tagged and
    logged, too.
    """

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(app)
        self._answer = _in_form(_on_any_error)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle the request.

        After the start of an answer the error is raised again: the server then closes the connection.
        """
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
