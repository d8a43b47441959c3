"""Requests, from the route to the body that is read.

Routes authorize a request and check its query before they handle it; some are registered at two paths, for the version
of a model that is served and for the one with a number. Bodies are read into memory within bounds, and threads work on
them while the client is there.

The key of a request that lasts is checked again and again: what is open for a revoked or expired key ends within
seconds. Like an invalid id, an invalid number of a version is answered with 404.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextvars import ContextVar, copy_context
from functools import cached_property, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from fastapi import APIRouter, Path, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from app.codecs.base import Bounds, Reserve
from app.codecs.dispatch import check_length, check_size, decompressor_of, is_compressed, media_type_of
from app.codecs.json.struct import StructT, decode_struct
from app.codecs.transport.encodings import Filter, filtered, without_byte_order_mark
from app.errors import InvalidRequest, UnsupportedMediaType
from app.http.access import KEY_ID, caller_of
from app.http.answers import json_answer
from app.http.limits import Reservation
from app.http.middleware import HELD
from app.http.schemas import ENCODING, error_responses, json_body, path_parameter
from core.errors import did_you_mean
from storage.errors import NotFound
from storage.names import VERSION_END, version_number
from storage.records import MAX_TEXT

if TYPE_CHECKING:
    from app.services.wiring import Services

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
        handle = super().get_route_handler()

        async def check_and_handle(request: Request) -> Response:
            return await handle(self.checked(request))

        return check_and_handle

    def checked(self, request: Request) -> Request:
        """The request, if it passes the checks."""
        access = services_of(request).access
        access.authorize(request.scope, str(self.tags[0]))
        if request.scope["query_string"]:
            known = self.query_names
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
        if KEY_ID not in request.scope:
            return request
        receive = receive_while_valid(request.receive, partial(access.check_again, request.scope))
        return Request(request.scope, receive)

    @cached_property
    def query_names(self) -> Sequence[str]:
        """Names of the query parameters."""
        described = (self.dependant, *self.dependant.dependencies)
        return [parameter.alias for each in described for parameter in each.query_params]


class RawRoute(AuthorizedRoute):
    """A route from request to response without FastAPI's parsing of bodies and stacks for dependencies, of which there
    are none; it is documented like others.
    """

    def __init__(self, path: str, endpoint: Handler, **described: Any) -> None:
        super().__init__(path, endpoint, **described)
        self.app = self.answer

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the function itself. Bytes are reserved for body and answer until the answer was sent."""
        request = self.checked(Request(scope, receive, send))
        reservation = scope[RESERVATION] = services_of(request).limits.bodies.reserve(caller_of(scope))
        scope[HELD].append(reservation.__exit__)
        response: Response = await self.endpoint(request)
        reservation.grow(len(response.body))
        await response(scope, receive, send)

    @cached_property
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


def services_of(request: Request) -> "Services":
    """The services of the gateway that handles this request."""
    found: Services = request.app.state.services
    return found


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


T = TypeVar("T")
_TURN_SECONDS = 0.008
"""Seconds for which small steps go on in their thread: to come back for each costs more than some of them take.
Predictions of a thousand documents are done in one turn: by turns, two would end at the same time, and nothing be
computed while their answers are read and the next bodies come."""
_MIN_BLOCK_BYTES = 32 << 10
"""Bytes of a block that is worth parsing alone; smaller parts are joined."""
_disconnected: ContextVar[threading.Event | None] = ContextVar("disconnected", default=None)
"""Event that is set when the client of this context has disconnected."""


async def in_thread(executor: Executor, function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function in a thread.

    A cancelled request waits for its end, so that nothing is cleaned up under it.
    """
    # the context carries the request id into the log lines of the thread
    future = asyncio.get_running_loop().run_in_executor(executor, copy_context().run, function, *arguments)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        await asyncio.wait([future])
        raise


async def read_blocks(request: Request, bounds: Bounds) -> list[bytes]:
    """The body as sent, in blocks of at least _MIN_BLOCK_BYTES but for the last; raises LimitExceeded, TooManyRequests,
    TooSlow.
    """
    check_length(request.headers, bounds)
    reservation: Reservation = request.scope[RESERVATION]
    blocks, size, more = [b""], 0, True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        check_size(size, bounds)
        reservation.grow(len(chunk))
        if len(blocks[-1]) < _MIN_BLOCK_BYTES:
            blocks[-1] += chunk
        else:
            blocks.append(chunk)
    return blocks


async def in_steps(request: Request | None, executor: Executor, steps: Iterator[T]) -> list[T]:
    """Do blocking work in a thread, some steps of an iterator at a time, and return the values of all steps.

    In between the thread serves others, so long work delays no other request by much more than a step. With
    ``request``, whose body must have been read, work ends there with ClientDisconnect if the client has disconnected.
    """
    done: list[T] = []
    ended = False
    while not ended:
        values, ended = await in_thread(executor, _some, steps)
        done += values
        if request is not None and await request.is_disconnected():
            raise ClientDisconnect
    return done


def last_of(steps: Iterable[T | None]) -> T:
    """What the last of some steps gives; those that are not done yet are done at once."""
    *_, found = steps
    assert found is not None
    return found


def _some(steps: Iterator[T]) -> tuple[list[T], bool]:
    """The values of the next steps, and whether these were the last."""
    until, values = time.perf_counter() + _TURN_SECONDS, []
    for value in steps:
        values.append(value)
        if time.perf_counter() >= until:
            return values, False
    return values, True


async def read_json(
    request: Request, services: "Services", kind: type[StructT], absent: StructT | None = None
) -> StructT:
    """A JSON body as a struct; ``absent``, if given, stands for an empty body.

    Raises InvalidRequest with the field, LimitExceeded, TooManyRequests, UnsupportedMediaType.
    """
    bounds = services.settings.request_bounds
    media_type = media_type_of(request.headers)
    is_empty = request.headers.get("content-length", "0") == "0" and "transfer-encoding" not in request.headers
    if absent is not None and not media_type and is_empty:
        return absent
    if media_type != "application/json":
        raise UnsupportedMediaType(f"a body of type {media_type or '(none)'}", "this body must be application/json")
    reservation: Reservation = request.scope[RESERVATION]
    decompressor = decompressor_of(request.headers, bounds, reservation.grow)
    blocks = await read_blocks(request, bounds)
    if sum(map(len, blocks)) < services.settings.large_request_bytes and not is_compressed(request.headers):
        return _decoded(blocks, decompressor, kind, reservation.grow)
    return await in_thread(services.pools.parse, _decoded, blocks, decompressor, kind, reservation.grow)


def _decoded(blocks: list[bytes], decompressor: Filter, kind: type[StructT], reserve: Reserve) -> StructT:
    return decode_struct(without_byte_order_mark(filtered(blocks, decompressor)), kind, reserve)


def on_json(
    router: APIRouter,
    method: str,
    path: str,
    body: type[msgspec.Struct],
    answer: type[BaseModel],
    example: dict[str, Any],
    parameters: Sequence[Mapping[str, Any]] = (),
    refused: Sequence[int] = (),
    status: int = 200,
) -> Callable[[Callable[..., BaseModel]], Callable[..., BaseModel]]:
    """Register a function of the services, a JSON body and the parameters of the path. It is called in a thread of the
    store, and its docstring is the description of the operation, which may be ``refused`` as others with a body.
    """

    def register(work: Callable[..., BaseModel]) -> Callable[..., BaseModel]:
        async def handle(request: Request) -> Response:
            services = services_of(request)
            given = await read_json(request, services, body)
            made = await in_thread(services.pools.store, partial(work, services, given, **request.path_params))
            return json_answer(made, status)

        handle.__doc__ = work.__doc__
        router.add_api_route(
            path,
            handle,
            methods=[method],
            name=work.__name__,
            status_code=status,
            responses={status: {"model": answer}, **error_responses(*refused, 408, 413, 415, 422, 429, 503, 507)},
            openapi_extra={**json_body(body, example), "parameters": [*parameters, ENCODING]},
        )
        return work

    return register


async def run_until_disconnect(request: Request, executor: Executor, function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function that calls ``raise_if_disconnected`` now and then.

    The body of the request must have been read.
    """
    disconnected = threading.Event()
    token = _disconnected.set(disconnected)
    watch = asyncio.create_task(_watch(request, disconnected))
    try:
        return await in_thread(executor, function, *arguments)
    finally:
        watch.cancel()
        _disconnected.reset(token)


def raise_if_disconnected() -> None:
    """Raises ClientDisconnect if the client of this context has disconnected."""
    disconnected = _disconnected.get()
    if disconnected is not None and disconnected.is_set():
        raise ClientDisconnect


async def _watch(request: Request, disconnected: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    disconnected.set()
