"""HTTP of both clients: addresses, keys, repeated requests, files that are written."""

import os
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct

from halfmoon.errors import ConnectionFailed, InvalidData, error_of
from halfmoon.values import encode

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "http://127.0.0.1:8000"
NONE: Mapping[str, str] = {}
JSON = {"Content-Type": "application/json"}
_BUSY = (429, 503)
"""Answers after which nothing was done, and another try may succeed."""
_LONGEST_WAIT = 30.0

Chunks = Callable[[], Iterator[bytes]]


class Request(Struct, frozen=True):
    """A request as it is sent; ``chunks`` begins a long body anew."""

    method: str
    path: str
    repeatable: bool | None = None
    """Whether it may come twice, by default unless it is a POST."""
    json: Any = None
    content: bytes | None = None
    chunks: Chunks | None = None
    headers: Mapping[str, str] = NONE
    params: Mapping[str, Any] = NONE
    file: str = ""
    """Name of the file that is sent, which a refusal names."""

    def arguments(self) -> dict[str, Any]:
        """Arguments of httpx beside the method, the path and a body of chunks."""
        given = {name: value for name, value in self.params.items() if value is not None} or None
        if self.json is None:
            return {"content": self.content, "headers": self.headers, "params": given}
        return {"content": encode(self.json), "headers": {**JSON, **self.headers}, "params": given}


class Connection:
    """A service and how often a request to it is tried again.

    A request is sent again where that is safe: after 429 and 503, which say that nothing was done; after a connection
    that was refused; and after one that broke off, if the request changes nothing when it comes twice.
    """

    def __init__(self, url: str | None, key: str | None, retries: int) -> None:
        import httpx

        self.url = (url or os.environ.get("HALFMOON_URL") or DEFAULT_URL).rstrip("/")
        if not self.url.startswith(("http://", "https://")):
            raise InvalidData(f"url {self.url!r}: an address begins with http:// or https://, as in {DEFAULT_URL}")
        given = (key or os.environ.get("HALFMOON_API_KEY") or "").strip()
        if not (given.isascii() and given.isprintable()):
            raise InvalidData("the API key has characters that no key has; was it cut, or read from another file?")
        self.headers = {"Authorization": f"Bearer {given}"} if given else {}
        self.retries = retries
        self.broken = httpx.TransportError
        self._unsent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

    def wait_after_break(self, request: Request, error: Exception, tries: int) -> float:
        """Seconds until the request is sent again; raises ConnectionFailed."""
        repeatable = request.method != "POST" if request.repeatable is None else request.repeatable
        if tries == self.retries or not (repeatable or isinstance(error, self._unsent)):
            raise self.failure(error) from error
        return _backoff(tries)

    def wait_after_refusal(self, request: Request, answer: "httpx.Response", tries: int) -> float:
        """Seconds until the request is sent again; raises RequestFailed."""
        refusal = error_of(answer.status_code, answer.content, answer.headers, request.file)
        if tries == self.retries or answer.status_code not in _BUSY:
            raise refusal
        return min(_LONGEST_WAIT, refusal.retry_after or 0.0) + _backoff(tries)

    def failure(self, error: Exception) -> ConnectionFailed:
        """The error to raise after one of httpx."""
        if isinstance(error, self._unsent):
            advice = "start it by `halfmoon up`, set HALFMOON_URL, or use Halfmoon.local()"
            return ConnectionFailed(f"no service answers at {self.url} ({error}); {advice}")
        return ConnectionFailed(f"the connection to {self.url} broke off: {type(error).__name__} {error}")


def _backoff(tries: int) -> float:
    return float(min(_LONGEST_WAIT, 0.1 * 2**tries) * random.uniform(0.5, 1.0))


@contextmanager
def written(target: "IO[bytes] | str | os.PathLike[str]") -> Iterator[IO[bytes]]:
    """A binary file to write to: the given one, or a new one, which gets its path when it is whole. A link stays, and
    so does a device or a pipe, which is written to as the data come.

    Raises InvalidData if the folder of the path is missing, or the path is a folder.
    """
    if not isinstance(target, str | os.PathLike):
        yield target
        return
    whole = Path(target)
    if not whole.parent.is_dir():
        raise InvalidData(f"there is no folder {str(whole.parent)!r}")
    if whole.is_dir():
        raise InvalidData(f"{str(whole)!r} is a folder; name a file in it")
    if whole.exists() and not whole.is_file():
        with whole.open("wb") as file:
            yield file
        return
    whole = whole.resolve()
    part = whole.with_name(f".{whole.name}.part")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)
