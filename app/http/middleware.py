"""What every request passes before the routes and its answer after them: plain ASGI, some microseconds each."""

import asyncio
import re
import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import Crowded, TooSlow, answer, in_form_of
from app.http.access import CALLER

REQUEST_ID = "X-Request-ID"
_ID_HEADER = REQUEST_ID.lower().encode()
CONNECTIONS = "halfmoon.connections"
"""Where a request carries how many connections there were when it came."""
UNTIL_SENT = "halfmoon.until-sent"
"""Where a request carries a stack of what ends when its answer has left this process (but for one piece), or nobody waits for it any more."""
PIECE_BYTES = 64 << 10
"""that leave at a time: as much as may wait in memory for a client that does not read"""
_ALWAYS_ANSWERED = ("/v1/health/live", "/v2/health/live")
_LONGEST_SHOWN = 512
_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Counted = Callable[[str, str, int, float], None]
"""Takes note of an answer: method, template of the route, status, seconds until it began."""


class Traced:
    """Gives every request an id (the client's own, if it sends a good one), which its answer and all log lines about it carry.

    With ``every`` set, a line is written for each answer; of a failure there is always one.
    """

    def __init__(self, app: ASGIApp, every: bool) -> None:
        self._app = app
        self._every = every

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == _ID_HEADER), b"")
        id = given if _GIVEN_ID.fullmatch(given) else secrets.token_hex(8).encode()
        # each request has a context of its own, so there is nothing to undo
        structlog.contextvars.bind_contextvars(request=id.decode())
        begun = time.perf_counter()

        async def traced(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (_ID_HEADER, id)]
                if self._every:
                    _tell(scope, message["status"], time.perf_counter() - begun)
            await send(message)

        await self._app(scope, receive, traced)


def shown(path: str) -> str:
    """A path as log lines have it, which is no longer than any that there is."""
    return path if len(path) <= _LONGEST_SHOWN else f"{path[:_LONGEST_SHOWN]}…"


def _tell(scope: Scope, status: int, seconds: float) -> None:
    found = {"method": scope["method"], "path": shown(scope["path"]), "status": int(status), "seconds": round(seconds, 6), "key": scope.get(CALLER)}
    _log.info("answered", **found)


class Measured:
    """Counts every request with the template of its route, its status and its time."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and count it when its answer begins."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", "(none)")
                seconds = time.perf_counter() - begun
                scope["app"].state.services.metrics.answered(scope["method"], route, message["status"], seconds)
            await send(message)

        await self._app(scope, receive, counted)


class Patient:
    """Gives up on a body of which nothing comes for ``idle`` seconds, or which comes slower than ``rate`` bytes a second on the whole."""

    def __init__(self, app: ASGIApp, idle: float, rate: float) -> None:
        self._app = app
        self._idle = idle
        self._rate = rate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        waited, size, whole = 0.0, 0, False

        async def in_time() -> Message:
            nonlocal waited, size, whole
            if whole:
                return await receive()
            begun = time.monotonic()
            try:
                # what the service itself takes over the body between two pieces is not the client's fault
                async with asyncio.timeout(min(self._idle, self._idle + size / self._rate - waited)):
                    message = await receive()
            except TimeoutError:
                raise TooSlow(self._idle, self._rate) from None
            waited += time.monotonic() - begun
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            return message

        await self._app(scope, in_time, send)


class Portioned:
    """Sends long answers in pieces, each when the one before has left: so that what is held for an answer is held until it was read."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def portioned(message: Message) -> None:
            body = message.get("body", b"")
            if len(body) <= PIECE_BYTES:
                await send(message)
                return
            pieces, more = memoryview(body), message.get("more_body", False)
            for start in range(0, len(body), PIECE_BYTES):
                end = start + PIECE_BYTES
                await send({"type": message["type"], "body": pieces[start:end], "more_body": more or end < len(body)})

        with ExitStack() as scope[UNTIL_SENT]:
            await self._app(scope, receive, portioned)


class Uncrowded:
    """Answers 429 while there are more than ``most`` connections, and closes the one that asked."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, if there is room; whoever asks whether the process lives is always told, else it would be ended for being busy."""
        if scope["type"] != "http" or scope.get(CONNECTIONS, 0) <= self._most or scope["path"] in _ALWAYS_ANSWERED:
            await self._app(scope, receive, send)
            return
        await in_form_of(scope["path"], answer(Crowded(self._most)))(scope, receive, send)


class Guarded:
    """Tells browsers what an answer is not: another type than it says, a part of another page, a source of anything from elsewhere."""

    _ALWAYS = ((b"x-content-type-options", b"nosniff"),)
    _PAGES = (
        *_ALWAYS,
        (b"x-frame-options", b"DENY"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    )

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; an answer in HTML is for people's eyes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                html = any(name == b"content-type" and value.startswith(b"text/html") for name, value in message["headers"])
                message["headers"] = [*message["headers"], *(self._PAGES if html else self._ALWAYS)]
            await send(message)

        await self._app(scope, receive, guarded)
