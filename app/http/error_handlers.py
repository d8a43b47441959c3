"""Exception handlers: every failure of a request is answered as a problem."""

from http import HTTPStatus

import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.errors import PROBLEM_TYPES, InvalidRequest, error_response, in_form_for, problem_response, shortened
from app.http.middleware import MAX_LOGGED_PATH, HttpMiddleware
from core.errors import HalfmoonError
from storage.problems import ProblemType

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
_CLIENT_CLOSED_REQUEST = 499


def _problem(request: Request, error: Exception) -> Response:
    match error:
        case HalfmoonError():
            response = error_response(error)
            if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
                _log.error("request failed", path=shortened(request.url.path, MAX_LOGGED_PATH), error=str(error))
            return response
        case RequestValidationError():
            named = [
                {"document": "", "field": ".".join(str(part) for part in each["loc"][1:]), "detail": each["msg"]}
                for each in error.errors()
            ]
            return problem_response(PROBLEM_TYPES[InvalidRequest], f"{named[0]['field']}: {named[0]['detail']}", named)
        case HTTPException():
            # there is no such path, or no such method of it
            status, detail, headers = HTTPStatus(error.status_code), "", error.headers
            if status == HTTPStatus.NOT_FOUND:
                detail = f"nothing is at {request.url.path}; /docs describes every call"
            elif status == HTTPStatus.METHOD_NOT_ALLOWED:
                # every method of the path, from the contract: a router knows only its own routes
                template = getattr(request.scope.get("route"), "path", "")
                known = request.app.openapi()["paths"].get(template, {"get": None})
                allowed = ", ".join(sorted(method.upper() for method in known))
                detail, headers = f"{request.method} is not possible here; possible are {allowed}", {"Allow": allowed}
            problem_type = ProblemType(status, status.phrase.lower().replace(" ", "-"), status.phrase)
            return problem_response(problem_type, detail or status.description or status.phrase, headers=headers)
    _log.error("request failed", path=shortened(request.url.path, MAX_LOGGED_PATH), exc_info=error)
    return error_response(HalfmoonError())


class ErrorBoundary(HttpMiddleware):
    """ASGI middleware that answers every error as a problem: 500 to one that is none of the service's own.

    It stands inside the middleware that counts, tags and logs answers, so that this answer is counted, tagged and
    logged, too.
    """

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
            if isinstance(error, ClientDisconnect):
                answer = Response(status_code=_CLIENT_CLOSED_REQUEST)
            else:
                request = Request(scope)
                answer = in_form_for(request.url.path, _problem(request, error))
            await answer(scope, receive, send)
