"""Route classes: they authorize a request and check its query before the route handles it.

The key of a request that lasts is checked again and again: what is open for a revoked or expired key ends within
seconds."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from typing import Any, Protocol

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.errors import InvalidRequest
from app.http.access import KEY_ID, Access, caller_of
from app.http.limits import Limit
from app.http.middleware import SEND_STACK
from app.settings import GatewaySettings
from core.spelling import did_you_mean
from storage.records import MAX_TEXT

RESERVATION = "halfmoon.reservation"
"""Key of the ASGI scope: what the request has reserved of the limit on buffered bytes."""
Handler = Callable[[Request], Coroutine[Any, Any, Response]]
CHECK_SECONDS = 1.0
"""Seconds between two checks while nothing happens."""


class AuthorizedRoute(APIRoute):
    """A route that checks the API key (see ``app.http.access``); its first tag is the kind of call.

    It refuses unknown and repeated query parameters: a misspelt or a second one would silently change the request.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **described: Any) -> None:
        super().__init__(path, endpoint, **described | {"generate_unique_id_function": attrgetter("name")})

    def get_route_handler(self) -> Handler:
        """The handler of the route, after the checks."""
        handle, known, tag = self.handler(), self.query_names(), str(self.tags[0])

        async def check_and_handle(request: Request) -> Response:
            access = state_of(request).access
            access.authorize(request.scope, tag)
            if KEY_ID in request.scope:
                request = Request(
                    request.scope, receive_while_valid(request.receive, partial(access.check_again, request.scope))
                )
            if request.scope["query_string"]:
                given = [name for name, _ in request.query_params.multi_items()]
                for name in given:
                    if name in known and given.count(name) > 1:
                        raise InvalidRequest(name, "is given more than once")
                    if name not in known:
                        raise InvalidRequest(
                            name[:MAX_TEXT],
                            f"unknown query parameter{did_you_mean(name, known) or ';'} known are {', '.join(known)}"
                            if known
                            else "no query parameter is known here",
                        )
            return await handle(request)

        return check_and_handle

    def handler(self) -> Handler:
        """The handler of a request that has passed the checks."""
        return super().get_route_handler()

    def query_names(self) -> Sequence[str]:
        """Names of the query parameters."""
        described = (self.dependant, *self.dependant.dependencies)
        return [parameter.alias for each in described for parameter in each.query_params]


class RawRoute(AuthorizedRoute):
    """A route from request to response without FastAPI's parsing of bodies; it is documented like others."""

    def __init__(self, path: str, endpoint: Handler, **described: Any) -> None:
        super().__init__(path, endpoint, **described)

        # FastAPI's own keeps two stacks for dependencies, of which there are none
        handle = self.get_route_handler()

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            response = await handle(Request(scope, receive, send))
            await response(scope, receive, send)

        self.app = answer

    def handler(self) -> Handler:
        """The function itself. It reserves bytes for body and answer until the answer was sent."""
        handle: Handler = self.endpoint

        async def reserve_and_handle(request: Request) -> Response:
            reservation = request.scope[SEND_STACK].enter_context(
                state_of(request).buffer_limit.reserve(caller_of(request.scope))
            )
            request.scope[RESERVATION] = reservation
            response = await handle(request)
            reservation.grow(len(response.body))
            return response

        return reserve_and_handle

    def query_names(self) -> Sequence[str]:
        """Names of the query parameters, from their documentation."""
        return [each["name"] for each in (self.openapi_extra or {}).get("parameters", []) if each["in"] == "query"]


def receive_while_valid(receive: Receive, check: Callable[[], None]) -> Receive:
    """A ``receive`` that checks the key with every part of the body, and while it waits for one.

    It raises what ``check`` raises.
    """
    complete = False

    async def receive_and_check() -> Message:
        nonlocal complete
        if complete:
            return await receive()
        receiving = asyncio.ensure_future(receive())
        try:
            while not (await asyncio.wait([receiving], timeout=CHECK_SECONDS))[0]:
                check()
        finally:
            if not receiving.done():
                receiving.cancel()
                await asyncio.wait([receiving])
        check()
        complete = not receiving.result().get("more_body", False)
        return receiving.result()

    return receive_and_check


class HttpState(Protocol):
    """The services that a route of any domain needs to authorize a request and to read its body."""

    @property
    def settings(self) -> GatewaySettings:
        """Settings, among them the bounds of bodies."""
        ...

    @property
    def access(self) -> Access:
        """Access control by API keys."""
        ...

    @property
    def buffer_limit(self) -> Limit:
        """Limit on bytes of bodies and answers in memory."""
        ...

    @property
    def parse_pool(self) -> ThreadPoolExecutor:
        """Threads that parse large bodies."""
        ...


def state_of(request: Request) -> HttpState:
    """The state of the gateway that handles this request."""
    found: HttpState = request.app.state.services
    return found
