"""Requests over HTTP."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TypeVar

import msgspec

from halfmoon._sync_only import sleep
from halfmoon.connection import NONE, Chunks, Connection, Paged, Request, written
from halfmoon.errors import error_of

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Page = TypeVar("Page", bound=Paged)


class Transport:
    """Sends requests and decodes answers."""

    def __init__(self, url: str | None, key: str | None, timeout: float, retries: int) -> None:
        import httpx

        self._connection = Connection(url, key, retries)
        self.url = self._connection.url
        self._client = httpx.Client(base_url=self.url, headers=self._connection.headers, timeout=timeout)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def call(self, method: str, path: str, kind: type[T], **request: Any) -> T:
        """The answer, decoded as ``kind``; raises RequestFailed, ConnectionFailed."""
        answer = self.send(method, path, **request)
        return msgspec.json.decode(answer.content, type=kind)

    def send(self, method: str, path: str, **fields: Any) -> "httpx.Response":
        """The answer to a request of these fields (``Request``)."""
        request = Request(method, path, **fields)
        arguments = request.arguments()
        tries = 0
        while True:
            if request.chunks is not None:
                arguments["content"] = _stream(request.chunks)
            try:
                answer = self._client.request(method, path, **arguments)
            except self._connection.broken as error:
                seconds = self._connection.wait_after_break(request, error, tries)
            else:
                if not answer.is_error:
                    return answer
                seconds = self._connection.wait_after_refusal(answer, tries)
            sleep(seconds)
            tries += 1

    def pages(self, path: str, kind: type[Page], params: Mapping[str, Any] = NONE) -> Iterator[Page]:
        """The pages of a list, each decoded as ``kind``; the next one is fetched when it is wanted."""
        cursor: str | None = None
        while True:
            page = self.call("GET", path, kind, params={**params, "cursor": cursor})
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    @contextmanager
    def stream(
        self, path: str, headers: Mapping[str, str] = NONE, timeout: float | None = None
    ) -> Iterator["httpx.Response"]:
        """An answer that is read as it comes; raises RequestFailed, ConnectionFailed."""
        limits = self._client.timeout if timeout is None else timeout
        try:
            with self._client.stream("GET", path, headers=headers, timeout=limits) as answer:
                if answer.is_error:
                    raise error_of(answer.status_code, answer.read(), answer.headers)
                yield answer
        except self._connection.broken as error:
            raise self._connection.failure(error) from error

    def download(
        self, path: str, target: "IO[bytes] | str | os.PathLike[str]", headers: Mapping[str, str] = NONE
    ) -> None:
        """Write an answer as it comes (``written``); raises RequestFailed, ConnectionFailed, InvalidData."""
        with written(target) as file:
            with self.stream(path, headers) as answer:
                for block in answer.iter_bytes():
                    file.write(block)


def _stream(chunks: Chunks) -> Iterator[bytes]:
    for chunk in chunks():
        yield chunk
