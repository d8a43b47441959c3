"""Requests over HTTP."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec

from halfmoon._async_only import sleep
from halfmoon.connection import NONE, Chunks, Connection, Request, written
from halfmoon.errors import error_of

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])


def operation(*names: str) -> Callable[[F], F]:
    """Say that a method calls these operations of the contract: a test compares them with it."""

    def mark(function: F) -> F:
        function.__dict__["operations"] = names
        return function

    return mark


class AsyncTransport:
    """Sends requests and decodes answers."""

    def __init__(self, url: str | None, key: str | None, timeout: float, retries: int) -> None:
        import httpx

        self._connection = Connection(url, key, retries)
        self.url = self._connection.url
        self._client = httpx.AsyncClient(base_url=self.url, headers=self._connection.headers, timeout=timeout)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def call(self, method: str, path: str, kind: type[T], **request: Any) -> T:
        """The answer, decoded as ``kind``; raises RequestFailed, ConnectionFailed."""
        answer = await self.send(method, path, **request)
        return msgspec.json.decode(answer.content, type=kind)

    async def send(self, method: str, path: str, **fields: Any) -> "httpx.Response":
        """The answer to a request of these fields (``Request``)."""
        request = Request(method, path, **fields)
        arguments = request.arguments()
        tries = 0
        while True:
            if request.chunks is not None:
                arguments["content"] = _stream(request.chunks)
            try:
                answer = await self._client.request(method, path, **arguments)
            except self._connection.broken as error:
                seconds = self._connection.wait_after_break(request, error, tries)
            else:
                if not answer.is_error:
                    return answer
                seconds = self._connection.wait_after_refusal(request, answer, tries)
            await sleep(seconds)
            tries += 1

    async def entries(
        self, path: str, name: str, kind: type[T], params: Mapping[str, Any] = NONE, cursor: str = "cursor"
    ) -> AsyncIterator[T]:
        """The entries of a list, each decoded as ``kind``, over all its pages; the next page is fetched when it is
        wanted. ``name`` is that of the list in a page, ``cursor`` that of the parameter which says where a page begins.
        """
        following: str | int | None = None
        while True:
            begin = {} if following is None else {cursor: following}
            page = await self.call("GET", path, dict[str, Any], params={**params, **begin})
            for entry in msgspec.convert(page[name], list[kind]):  # type: ignore[valid-type]
                yield entry
            following = page.get("next_cursor", page.get("next"))
            if following is None:
                return

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str] = NONE, timeout: float | None = None
    ) -> AsyncIterator["httpx.Response"]:
        """An answer that is read as it comes; raises RequestFailed, ConnectionFailed."""
        limits = self._client.timeout if timeout is None else timeout
        try:
            async with self._client.stream("GET", path, headers=headers, timeout=limits) as answer:
                if answer.is_error:
                    raise error_of(answer.status_code, await answer.aread(), answer.headers)
                yield answer
        except self._connection.broken as error:
            raise self._connection.failure(error) from error

    async def download(
        self, path: str, target: "IO[bytes] | str | os.PathLike[str]", headers: Mapping[str, str] = NONE
    ) -> None:
        """Write an answer as it comes (``written``); raises RequestFailed, ConnectionFailed, InvalidData."""
        with written(target) as file:
            async with self.stream(path, headers) as answer:
                async for block in answer.aiter_bytes():
                    file.write(block)


class AsyncResource:
    """Things of one kind that a service has."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport


async def _stream(chunks: Chunks) -> AsyncIterator[bytes]:
    for chunk in chunks():
        yield chunk
