"""Routes that look at a request before they take it: who makes it, and whether they know what it asks."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from app.codecs.base import MAX_TEXT
from app.errors import InvalidRequest
from app.http.middleware import SEND_STACK
from app.http.state import state_of

RESERVATION = "halfmoon.reservation"
"""Where a request carries what it takes of the memory for bodies."""
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class AuthorizedRoute(APIRoute):
    """A route for those whose key allows it (see ``app.http.access``; its first tag says what kind of call it is).

    It refuses query parameters that it does not know, or twice, since a misspelt or a second one would silently change what is asked.
    """

    def get_route_handler(self) -> Handler:
        """The route's own handler after the checks."""
        handle, known, tag = self.handler(), self.query_names(), str(self.tags[0])

        async def checked(request: Request) -> Response:
            state_of(request).access.authorize(request.scope, tag)
            if request.scope["query_string"]:
                _check_query(request, known)
            return await handle(request)

        return checked

    def handler(self) -> Handler:
        """What answers a request whose query is in order."""
        return super().get_route_handler()

    def query_names(self) -> Sequence[str]:
        """The parameters that may be in the query."""
        return [parameter.alias for parameter in self.dependant.query_params]


class RawRoute(AuthorizedRoute):
    """A route whose function takes the request and gives the response, with nothing of FastAPI's in between; it is documented like others."""

    def handler(self) -> Handler:
        """The function itself; what is held of body and answer is counted until that was sent."""
        handle: Handler = self.endpoint

        async def counted(request: Request) -> Response:
            reservation = request.scope[SEND_STACK].enter_context(state_of(request).buffer_limit.reserve())
            request.scope[RESERVATION] = reservation
            response = await handle(request)
            reservation.grow(len(response.body))
            return response

        return counted

    def query_names(self) -> Sequence[str]:
        """As they are documented."""
        return [each["name"] for each in (self.openapi_extra or {}).get("parameters", []) if each["in"] == "query"]


def _check_query(request: Request, known: Sequence[str]) -> None:
    given = [name for name, _ in request.query_params.multi_items()]
    for name in given:
        if name in known and given.count(name) > 1:
            raise InvalidRequest(name, "is given more than once")
        if name not in known:
            raise InvalidRequest(
                name[:MAX_TEXT], f"unknown query parameter; known are {', '.join(known)}" if known else "no query parameter is known here"
            )
