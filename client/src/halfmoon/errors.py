"""Errors, as a tree.

HalfmoonError
├── InvalidData          the data cannot be sent; nothing was
├── ConnectionFailed     the service cannot be reached, or broke off
├── WaitTimeout          a job has not ended in time; it goes on
├── JobFailed            a job failed or was cancelled
└── RequestFailed        the service refused the request
    ├── Unauthenticated  401
    ├── Forbidden        403
    ├── NotFound         404
    ├── Conflict         409
    ├── LimitExceeded    413
    ├── InvalidRequest   415, 422: the documents, options or names are not valid
    ├── TooManyRequests  429
    └── Unavailable      503, 507
"""

from collections.abc import Mapping
from typing import Any

import msgspec

_SHOWN = 5


class HalfmoonError(Exception):
    """Anything that goes wrong with Halfmoon."""


class InvalidData(HalfmoonError):
    """The data cannot be sent as they are; nothing was sent."""


class ConnectionFailed(HalfmoonError):
    """The service cannot be reached, or broke off."""


class WaitTimeout(HalfmoonError):
    """A job has not ended in time. It goes on: wait again, or cancel it."""


class JobFailed(HalfmoonError):
    """A job failed or was cancelled."""

    def __init__(self, id: str, state: str, error: Mapping[str, Any] | None) -> None:
        super().__init__(f"job {id} {'was cancelled' if error is None else 'failed: ' + str(error.get('detail'))}")
        self.id = id
        self.state = state
        self.error = error


class RequestFailed(HalfmoonError):
    """The service refused the request."""

    def __init__(
        self, status: int, problem: Mapping[str, Any], request_id: str, seconds: float | None = None, file: str = ""
    ) -> None:
        self.status = status
        self.type = str(problem.get("type", ""))
        self.detail = str(problem.get("detail") or problem.get("error") or "")
        self.errors: list[dict[str, str]] = list(problem.get("errors") or [])
        """Documents or fields that the service names, each with ``document``, ``field``, ``detail`` and, of a document,
        its ``place`` in words."""
        self.request_id = request_id
        """Id of the request, under which the log of the service has it."""
        self.retry_after = seconds
        """Seconds after which the service may answer."""
        self.file = file
        """Name of the file that was sent."""
        super().__init__(self._text())

    def _text(self) -> str:
        # the same is often wrong in each line of a file
        said = [
            (each.get("field"), each.get("detail", "").removeprefix("line ").lstrip("0123456789"))
            for each in self.errors
        ]
        named = [
            f"\n  {each.get('place')}: the same"
            if each.get("place") and said[number] == said[number - 1]
            else "\n  " + ": ".join(filter(None, map(each.get, ("place", "field", "detail"))))
            for number, each in enumerate(self.errors[1:], 1)
        ]
        more = f"\n  and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
        file = f"{self.file}: " if self.file and isinstance(self, InvalidRequest | LimitExceeded) else ""
        return (
            f"{file}{self.detail or 'no reason given'} ({self.status}, request "
            f"{self.request_id or 'unknown'}){''.join(named[:_SHOWN])}{more}"
        )


class Unauthenticated(RequestFailed):
    """No key was sent, or no valid one: give ``key``, or set HALFMOON_API_KEY."""


class Forbidden(RequestFailed):
    """The key is not for this call."""


class NotFound(RequestFailed):
    """Nothing has this name or id."""


class Conflict(RequestFailed):
    """The present state forbids it."""


class LimitExceeded(RequestFailed):
    """More than this installation takes."""


class InvalidRequest(RequestFailed):
    """The documents, options or names are not valid; ``errors`` names them."""


class TooManyRequests(RequestFailed):
    """A limit is reached; ``retry_after`` says when to try again."""


class Unavailable(RequestFailed):
    """A part of the service does not answer, or the store is full."""


_BY_STATUS: dict[int, type[RequestFailed]] = {
    **{
        401: Unauthenticated,
        403: Forbidden,
        404: NotFound,
        409: Conflict,
        413: LimitExceeded,
        415: InvalidRequest,
        422: InvalidRequest,
    },
    **{400: InvalidRequest, 429: TooManyRequests, 503: Unavailable, 507: Unavailable},
}


def error_of(status: int, body: bytes, headers: Mapping[str, str], file: str = "") -> RequestFailed:
    """The error that an answer is."""
    try:
        problem = msgspec.json.decode(body)
    except msgspec.MsgspecError:
        problem = body[:500].decode(errors="replace")
    if not isinstance(problem, dict):
        problem = {"detail": f"an answer that is not of Halfmoon: {problem!s:.300}"}
    seconds = headers.get("retry-after", "")
    after = float(seconds) if seconds.isdecimal() else None
    return _BY_STATUS.get(status, RequestFailed)(status, problem, headers.get("x-request-id", ""), after, file)
