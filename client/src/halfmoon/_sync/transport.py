"""Requests over HTTP: headers, retries, errors."""

import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from halfmoon._sync_only import sleep
from halfmoon.errors import ConnectionFailed, InvalidData, RequestFailed, error_of
from halfmoon.values import json_of

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
Page = TypeVar("Page", bound="Paged")

DEFAULT_URL = "http://127.0.0.1:8000"
_BUSY = (429, 503)
"""Answers after which nothing was done, and another try may succeed."""
_LONGEST_WAIT = 30.0
_JSON = {"Content-Type": "application/json"}
_UNNAMED: Mapping[str, str] = {}
_encode = msgspec.json.Encoder(enc_hook=json_of).encode

Chunks = Callable[[], Iterator[bytes]]


class Paged(Protocol):
    """A page of a list."""

    next_cursor: str | None
    """Cursor of the next page, None on the last one."""


class Transport:
    """Sends requests and decodes answers.

    A request is sent again where that is safe: after 429 and 503, which say that nothing was done; after a connection that was refused; and after one
    that broke off, if the request changes nothing when it comes twice.
    """

    def __init__(self, url: str | None, key: str | None, timeout: float, retries: int) -> None:
        import httpx

        self.url = _address(url or os.environ.get("HALFMOON_URL") or DEFAULT_URL)
        key = _key(key or os.environ.get("HALFMOON_API_KEY") or "")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._retries = retries
        self._client = httpx.Client(base_url=self.url, headers=headers, timeout=timeout)
        self._unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
        self._broken = httpx.TransportError

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def call(self, method: str, path: str, kind: type[T], *, repeatable: bool | None = None, **request: Any) -> T:
        """The answer, decoded as ``kind``; raises RequestFailed, ConnectionFailed."""
        answer = self.send(method, path, repeatable=repeatable, **request)
        return msgspec.json.decode(answer.content, type=kind)

    def send(
        self,
        method: str,
        path: str,
        *,
        repeatable: bool | None = None,
        json: Any = None,
        content: bytes | None = None,
        chunks: Chunks | None = None,
        headers: Mapping[str, str] = _UNNAMED,
        params: Mapping[str, Any] = _UNNAMED,
    ) -> "httpx.Response":
        """The answer; ``repeatable`` says whether the request may come twice, by default unless it is a POST. ``chunks`` begins the body anew."""
        if json is not None:
            content, headers = _encode(json), {**_JSON, **headers}
        given = {name: value for name, value in params.items() if value is not None}
        for left in range(self._retries, -1, -1):
            try:
                body: Any = content if chunks is None else _stream(chunks)
                answer = self._client.request(method, path, content=body, headers=headers, params=given or None)
            except self._broken as error:
                safe = isinstance(error, self._unsent) or (method != "POST" if repeatable is None else repeatable)
                if not (left and safe):
                    raise self._failure(error) from error
                sleep(_backoff(self._retries - left))
                continue
            if not answer.is_error:
                return answer
            refusal = error_of(answer.status_code, answer.content, answer.headers)
            if not left or answer.status_code not in _BUSY:
                raise refusal
            sleep(_wait(refusal, self._retries - left))
        raise AssertionError("the last try returns or raises")

    def pages(self, path: str, kind: type[Page], params: Mapping[str, Any] = _UNNAMED) -> Iterator[Page]:
        """The pages of a list, each decoded as ``kind``; the next one is fetched when it is wanted."""
        cursor: str | None = None
        while True:
            page = self.call("GET", path, kind, params={**params, "cursor": cursor})
            yield page
            cursor = page.next_cursor
            if cursor is None:
                return

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str] = _UNNAMED, timeout: float | None = None) -> Iterator["httpx.Response"]:
        """An answer that is read as it comes; raises RequestFailed, ConnectionFailed."""
        limits = self._client.timeout if timeout is None else timeout
        try:
            with self._client.stream("GET", path, headers=headers, timeout=limits) as answer:
                if answer.is_error:
                    raise error_of(answer.status_code, answer.read(), answer.headers)
                yield answer
        except self._broken as error:
            raise self._failure(error) from error

    def download(self, path: str, target: "IO[bytes] | str | os.PathLike[str]", headers: Mapping[str, str] = _UNNAMED) -> None:
        """Write an answer to a binary file as it comes, or to a path, which has it when it is whole.

        Raises RequestFailed, ConnectionFailed, and InvalidData if the folder of the path is missing.
        """
        if not isinstance(target, str | os.PathLike):
            self._write(path, target, headers)
            return
        whole = Path(target)
        if not whole.parent.is_dir():
            raise InvalidData(f"there is no folder {str(whole.parent)!r}")
        part = whole.with_name(f".{whole.name}.part")
        try:
            with part.open("wb") as file:
                self._write(path, file, headers)
            part.replace(whole)
        finally:
            part.unlink(missing_ok=True)

    def _write(self, path: str, file: IO[bytes], headers: Mapping[str, str]) -> None:
        with self.stream(path, headers) as answer:
            for block in answer.iter_bytes():
                file.write(block)

    def _failure(self, error: Exception) -> ConnectionFailed:
        if isinstance(error, self._unsent):
            advice = "start it by `halfmoon up`, set HALFMOON_URL, or use Halfmoon.local()"
            return ConnectionFailed(f"no service answers at {self.url} ({error}); {advice}")
        return ConnectionFailed(f"the connection to {self.url} broke off: {type(error).__name__} {error}")


def _address(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise InvalidData(f"url {url!r}: an address begins with http:// or https://, as in {DEFAULT_URL}")
    return url.rstrip("/")


def _key(key: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise InvalidData("the API key has characters that no key has; was it cut, or read from another file?")
    return key


def _stream(chunks: Chunks) -> Iterator[bytes]:
    for chunk in chunks():
        yield chunk


def _backoff(tries: int) -> float:
    return float(min(_LONGEST_WAIT, 0.1 * 2**tries) * random.uniform(0.5, 1.0))


def _wait(refusal: RequestFailed, tries: int) -> float:
    return min(_LONGEST_WAIT, refusal.retry_after or 0.0) + _backoff(tries)
